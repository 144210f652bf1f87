@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

struct WriteCancellationTests {
    @Test(.pair) func itsChainCancelsIt() throws {
        let budget = net.limitSends(to: 1)
        let first = connection.write("ab")
        let chain = connection.write("cd").then { connection.write("ef") }.map { 1 }
        chain.cancel()
        budget.remaining += 100
        try hang(first, timeout: patience)
        let ended = connection.shutdownWrite()
        try hang(ended, timeout: patience)
        expectEqual(try peer.readToEnd(), Array("ab".utf8))
    }

    @Test(.pair, arguments: [false, true]) func theLastOneGoneTheEndIsSent(closes: Bool) throws {
        net.limitSends(to: 0)
        let write = connection.write("lost")
        let ended = closes ? connection.close().asPromise() : connection.shutdownWrite()
        expect(ended.isPending)
        write.cancel()
        expectEqual(try peer.readToEnd(), [])
        peer.end()
        try hang(ended, timeout: patience)
        expectEqual(connection.queuedBytes, 0)
    }

    @Test(.pair) func aHandlerThatCancelsOthersWhileTheQueueIsFlushed() throws {
        let budget = net.limitSends(to: 0)
        let first = connection.write("1")
        let second = connection.write("2")
        let third = connection.write("3")
        let others = [second, third]
        first.pipe { _ in for other in others { other.cancel() } }
        // All three are sent with one call: the others are not waiting any more.
        budget.remaining += 100
        try hang(first, timeout: patience)
        expectEqual(try peer.receive(exactly: 3), Array("123".utf8))
        _ = try? hang(when(fulfilled: others), timeout: patience)
        expect(second.isFulfilled && third.isFulfilled)
    }

    @Test(.pair(turns: 100_000), arguments: UInt64(0)..<60)
    func anyMixture(seed: UInt64) throws {
        var random = SplitMix64(seed)
        connection.writeQueueLimit = .max
        let budget = net.limitSends(to: 0)
        var expected: [(bytes: [UInt8], write: Promise<Void>)] = []
        for step in 0..<100 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let size = [0, 1, 10, 5000, 16_384, 40_000].randomElement(using: &random)!
                let bytes = pattern(size, from: step * 77)
                let cut = Int.random(in: 0...size, using: &random)
                let parts = [Array(bytes[..<cut]), [], Array(bytes[cut...])]
                let write: Promise<Void> =
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: connection.write(bytes)
                    case 1: connection.write(bytes.span.bytes)
                    default: connection.write(parts)
                    }
                expected.append((bytes, write))
            case 2: expected.randomElement(using: &random)?.write.cancel()
            default:
                budget.remaining += Int.random(in: 0..<30_000, using: &random)
                try net.loop.turn(.poll)
            }
        }
        budget.remaining += .max / 2
        let received = elsewhere { try peer.readToEnd() }
        try hang(connection.shutdownWrite(), timeout: patience)
        let sent = expected.filter { $0.write.error == nil }.flatMap(\.bytes)
        expectEqual(try hang(received, timeout: patience), sent)
        expect(expected.allSatisfy { $0.write.isResolved })
    }

    /// Whatever is queued, sent in parts and withdrawn: the kernel gets the bytes of the other writes, in order.
    @Test(arguments: UInt64(0)..<6) func theQueueSendsWhatIsLeft(seed: UInt64) {
        var dice = SplitMix64(seed)
        let queue = WriteQueue()
        var writes: [(promise: PromiseCore?, bytes: ArraySlice<UInt8>, isBegun: Bool)] = []
        var next: UInt8 = 0
        for _ in 0..<2000 {
            switch Int.random(in: 0..<100, using: &dice) {
            case 0...91:
                let count = [0, 1, 1, 100, 100, 1000, 20_000].randomElement(using: &dice)!
                next &+= 1
                let bytes = [UInt8](repeating: next, count: count)
                let promise = Int.random(in: 0..<8, using: &dice) > 0 ? PromiseCore.ofWrite(by: NoProducer()) : nil
                let isFinal = Int.random(in: 0..<16, using: &dice) == 0
                queue.append(bytes, isFinal: isFinal, promise)
                if promise != nil || count > 0 { writes.append((promise, bytes[...], isFinal && count > 0)) }
            case 92...93:
                for _ in 0..<Int.random(in: 1...400, using: &dice) {
                    guard let index = writes.indices.randomElement(using: &dice), let promise = writes[index].promise
                    else { continue }
                    let isWithdrawn = queue.withdraw(promise)
                    expectEqual(isWithdrawn, !writes[index].isBegun)
                    if isWithdrawn { writes.remove(at: index) }
                }
            default:
                var all: [UInt8] = []
                for write in writes { all += write.bytes }
                let (_, offered) = queue.withIOVectors { pieces in
                    var place = 0
                    for piece in pieces {
                        expect(
                            all.withUnsafeBytes { memcmp($0.baseAddress! + place, piece.iov_base, piece.iov_len) } == 0)
                        place += piece.iov_len
                    }
                    return 0
                }
                expect(offered > 0 || all.isEmpty)
                var count = Int.random(in: 0...min(offered, 3000), using: &dice)
                let finished = queue.advance(count)
                var expected: [PromiseCore] = []
                while let first = writes.first, first.bytes.count <= count {
                    count -= first.bytes.count
                    writes.removeFirst()
                    if let promise = first.promise { expected.append(promise) }
                }
                if count > 0 {
                    writes[0].bytes.removeFirst(count)
                    writes[0].isBegun = true
                }
                expect(finished.elementsEqual(expected, by: ===))
            }
            expectEqual(queue.count, writes.reduce(0) { $0 + $1.bytes.count })
            expect(queue.memory >= queue.count)
        }
        while !queue.isEmpty { _ = queue.advance(queue.withIOVectors { _ in 0 }.offered) }
        expectEqual(queue.memory, 0)
    }

    private final class NoProducer: CancellableWork {
        func stop(_ promise: PromiseCore) -> Bool { false }
    }
}
