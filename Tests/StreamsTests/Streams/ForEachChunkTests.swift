import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct ForEachChunkTests {
    private struct Enough: Error, Equatable {}

    private func text(_ chunk: RawSpan) -> String { chunk.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }

    @Test func anEchoIsOneLineAndThreeCallsAMessage() throws {
        try withNetwork(turns: 2500) { net in
            let (connection, peer) = try net.pair()
            let served = connection.forEachChunk { connection.write($0) }
            let client = elsewhere {
                for number in 0..<1000 {
                    let message = pattern(64, from: number)
                    try peer.send(message)
                    expectEqual(try peer.receive(exactly: 64), message)
                }
                peer.end()
            }
            let before = net.loop.metrics.systemCalls.values.reduce(0, +)
            try hang(served, timeout: patience)
            try hang(client, timeout: patience)
            let calls = net.loop.metrics.systemCalls.values.reduce(0, +) - before
            expect(Double(calls) / 1000 <= 3.2)
            expect(net.calls(.epollControl) <= 8)
            // It is free again.
            expectEqual(connection.read().settledValue, .end)
        }
    }

    @Test func whatACancelledReadHasLeftComesInChunksOfTheUsualSize() throws {
        try withNetwork(turns: 2000) { net in
            let (a, b) = try Connection.pair()
            let read = a.read(exactly: 1_000_000)
            try hang(b.write(pattern(300_000)), timeout: patience)
            net.settle()
            read.cancel()
            b.shutdownWrite().cauterize()
            var sizes: [Int] = []
            var (jobs, most) = (0, 0)
            let all = a.forEachChunk { (chunk: RawSpan) -> Void in
                sizes.append(chunk.byteCount)
                jobs += 1
                most = max(most, jobs)
                net.loop.enqueue { jobs -= 1 }
            }
            try hang(all, timeout: patience)
            expect(sizes.reduce(0, +) == 300_000 && sizes.max()! <= 65536)
            expectEqual(most, 1, "each has a job of its own, so that the stack does not grow")
            b.abort()
        }
    }

    @Test func aLargeTransferComesWholeThroughASlowPeer() throws {
        try withNetwork(turns: 4000) { net in
            let (a, b) = try Connection.pair()
            let large = pattern(5_000_000)
            b.forEachChunk { b.write($0) }.then { b.shutdownWrite() }.cauterize()
            let write = a.write(large)
            a.shutdownWrite().cauterize()
            expectEqual(try hang(readToEnd(a), timeout: patience), large)
            try hang(write, timeout: patience)
        }
    }

    @Test func aPendingPromisePausesReading() throws {
        try withNetwork { net in
            let (a, b) = try Connection.pair()
            var seen: [String] = []
            let (gate, resolver) = Promise<Void>.pending()
            let all = a.forEachChunk { chunk -> Promise<Void> in
                seen.append(text(chunk))
                return seen.count == 1 ? gate : .value
            }
            try hang(b.write("one"), timeout: patience)
            try net.loop.run(until: { seen.count == 1 })
            try hang(b.write("two"), timeout: patience)
            b.abort()
            let calls = net.calls(.receive)
            // Not even the peer's end keeps it busy.
            expect(net.turns { net.settle() } <= 5)
            expect(net.calls(.receive) == calls && seen == ["one"])
            expectEqual(a.read().settledValue, failed(EBUSY))
            resolver.fulfill()
            try hang(all, timeout: patience)
            expectEqual(seen, ["one", "two"])
        }
    }

    @Test func theValuesOfTheBodysPromisesDoNotMatter() throws {
        try withNetwork { net in
            let (a, b) = try Connection.pair()
            let (pending, resolver) = Promise<[String]>.pending()
            var seen: [String] = []
            let all = a.forEachChunk { chunk -> Promise<[String]> in
                seen.append(text(chunk))
                return seen.count == 2 ? pending : .value(seen)
            }
            for word in ["one", "two", "three"] {
                try hang(b.write(word), timeout: patience)
                net.settle()
            }
            expectEqual(seen, ["one", "two"])
            resolver.fulfill(["done"])
            b.close()
            try hang(all, timeout: patience)
            expectEqual(seen, ["one", "two", "three"])
            expectEqual(pending.settledValue, ["done"])
        }
    }

    @Test func whatTheBodyThrowsOrReturnsEndsIt() throws {
        try withNetwork { net in
            let (a, b) = try Connection.pair()
            let thrown = a.forEachChunk { _ in throw Enough() }
            try hang(b.write("x"), timeout: patience)
            expect(thrown, failsWith: Enough())
            let returned = a.forEachChunk { _ in Promise<Void>(error: Enough()) }
            try hang(b.write("x"), timeout: patience)
            expect(returned, failsWith: Enough())
            let later = a.forEachChunk { _ in after(.milliseconds(1)).then { Promise<Void>(error: Enough()) } }
            try hang(b.write("x"), timeout: patience)
            expect(later, failsWith: Enough())
            try hang(b.write("y"), timeout: patience)
            expectEqual(try hang(a.receive(), timeout: patience), [0x79])
        }
    }

    /// The promise of the read has the only reference to the connection, and releases it in a call of the connection.
    @Test func aConnectionThatOnlyTheReadRetainsFailsWhenItCannotBeRegistered() throws {
        try withNetwork { net in
            var (connection, peer): (Connection?, Peer) = try net.pair()
            defer { peer.close() }
            let end = try #require(connection?.closed)
            let (work, resolver) = Promise<Void>.pending()
            var calls = 0
            let reading = try #require(connection).forEachChunk { _ in
                calls += 1
                return work
            }
            connection = nil
            try peer.send("x")
            try net.loop.run(until: { calls == 1 })
            // Input that nothing waits for ends the registration, so that the next wait needs another one.
            try peer.send("y")
            for _ in 0..<3 { try net.loop.turn(.poll) }
            net.kernel.epollControl = { _, _, _, _ in -Int(EPERM) }
            resolver.fulfill()
            expectEqual(try rejection(of: reading), EPERM)
            guard case .failed(let error)? = end.settledValue else { return expect(Bool(false), "\(end)") }
            expectEqual(error.code, EPERM)
        }
    }

    @Test func cancelledItLeavesTheRestToOthers() throws {
        try withNetwork { net in
            let (a, b) = try Connection.pair()
            // Before it has begun, while it waits for input, and while it waits for the body's promise.
            a.forEachChunk { _ in Issue.record("it was cancelled") }.cancel()
            let reading = a.forEachChunk { _ in Issue.record("it was cancelled") }
            try net.loop.turn(.poll)
            reading.cancel()
            expect(!net.loop.isAlive)
            let (work, resolver) = Promise<Void>.pending()
            let paused = a.forEachChunk { _ in work }
            try hang(b.write("x"), timeout: patience)
            try net.loop.run(until: { a.bytesReceived == 1 })
            paused.cancel()
            expect(work.error as? PromiseError == .cancelled)
            resolver.fulfill()
            var inside: Promise<Void>?
            inside = a.forEachChunk { _ in inside?.cancel() }
            try hang(b.write("y"), timeout: patience)
            expect(inside!, failsWith: PromiseError.cancelled)
            try hang(b.write("z"), timeout: patience)
            expectEqual(try hang(a.receive(), timeout: patience), [0x7A])
            expect(!net.loop.isAlive)
        }
    }

    @Test func returnedByAHandlerItIsCancelledWithThatChain() throws {
        try withNetwork { net in
            let (a, b) = try Connection.pair()
            // Both while it waits for input and while it waits for the body's promise.
            for isPaused in [false, true] {
                let (work, resolver) = Promise<Void>.pending()
                let chain = after(.zero).then {
                    after(.zero).then { a.forEachChunk { _ in isPaused ? work : .value } }.map { "done" }
                }
                let before = a.bytesReceived
                try hang(b.write("x"), timeout: patience)
                try net.loop.run(until: { a.bytesReceived > before })
                try net.loop.turn(.poll)
                expect(chain.isPending)
                chain.cancel()
                try net.loop.run()
                expectEqual(work.isRejected, isPaused)
                resolver.fulfill()
                try hang(b.write("y"), timeout: patience)
                expectEqual(try hang(a.receive(), timeout: patience), [0x79])
            }
        }
    }

    @Test func aListenerMayServeWithIt() throws {
        try withNetwork(turns: 1000) { net in
            let listener = try net.listen()
            let address = listener.localAddress
            let served = listener.serve { connection in connection.forEachChunk { connection.write($0) } }
            let clients = elsewhere {
                for number in 0..<20 {
                    let peer = try Peer(to: address)
                    try peer.send(pattern(1000, from: number))
                    peer.end()
                    expectEqual(try peer.readToEnd(), pattern(1000, from: number))
                }
            }
            try hang(clients, timeout: patience)
            listener.close()
            try hang(served, timeout: patience)
        }
    }

    @Test func aChunkStaysAsItIsWhateverItsBodyDoes() throws {
        try withNetwork { net in
            let (a, peer) = try net.pair()
            let (c, d) = try Connection.pair()
            var seen: [String] = []
            let all = a.forEachChunk { chunk in
                // Other connections read meanwhile, as does the connection itself, without a reader.
                d.write("elsewhere").cauterize()
                expectEqual(try hang(c.receive(), timeout: patience), Array("elsewhere".utf8))
                try peer.send("unread")
                awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
                a.close()
                seen.append(text(chunk))
            }
            try peer.send("chunk")
            expectEqual(try rejection(of: all), ECANCELED)
            expectEqual(seen, ["chunk"])
        }
    }

    @Test func aResetRejectsIt() throws {
        try withNetwork { net in
            let (a, peer) = try net.pair()
            let all = a.forEachChunk { _ in }
            try peer.send("x")
            net.settle(.milliseconds(1))
            peer.reset()
            expectEqual(try rejection(of: all), ECONNRESET)
        }
    }

    @Test func theEndOfTheLoopLetsItGo() throws {
        for isPaused in [false, true] {
            weak var witness: Connection?
            var outcome: Promise<Void>?
            try withNetwork { net in
                let (a, b) = try Connection.pair()
                witness = a
                outcome = a.forEachChunk { _ -> Promise<Void> in
                    _ = a
                    return isPaused ? after(.seconds(3600)).asPromise() : .value
                }
                try hang(b.write("x"), timeout: patience)
                try net.loop.run(until: { a.bytesReceived == 1 })
                outcome?.catch(policy: .allErrors) { _ in }
            }
            let isGone = witness == nil
            expect(isGone, "paused: \(isPaused)")
            expectEqual(outcome?.isRejected, true, "paused: \(isPaused)")
        }
    }

    @Test func oneReadATurnLeavesOthersTheirTurns() throws {
        try withNetwork(turns: 2000) { net in
            let (a, peer) = try net.pair()
            let (other, client) = try net.pair()
            let flood = a.forEachChunk { _ in }
            var floods = 0
            let busy = net.ledger.accepted[0]
            let real = net.kernel.receive
            net.kernel.receive = {
                if $0 == busy { floods += 1 }
                return real($0, $1, $0 == busy ? min($2, 1000) : $2)
            }
            try peer.send(pattern(200_000))
            try client.send("ping")
            awaitArrival(of: POLLIN, at: net.ledger.accepted[1])
            try hang(other.receive(), timeout: patience)
            expect(floods <= 3)
            peer.end()
            try hang(flood, timeout: patience)
            expectEqual(a.bytesReceived, 200_000)
        }
    }
}
