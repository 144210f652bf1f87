@testable import PromisesTestSupport

struct WriteTests {
    @Test func writesGoOutInTheOrderOfTheCalls() throws {
        try withPair { _, connection, peer in
            let writes = [
                connection.write("one "), connection.write(Array("two ".utf8)), connection.write("three ".utf8),
                connection.write([Array("fo".utf8), [], Array("ur".utf8)]), connection.write(ArraySlice([0x21])),
            ]
            try hang(when(fulfilled: writes), timeout: patience)
            expectEqual(connection.queuedBytes, 0)
            connection.close()
            peer.end()
            expectEqual(try peer.readToEnd(), Array("one two three four!".utf8))
        }
    }

    @Test func anEmptyWriteSendsNothing() throws {
        try withPair { net, connection, peer in
            let empty = [connection.write(""), connection.write([UInt8]()), connection.write([[UInt8]]())]
            try hang(when(fulfilled: empty), timeout: patience)
            expectEqual(net.calls(.send), 0)
            try hang(connection.write("x"), timeout: patience)
            expectEqual(try peer.receive(), [0x78])
        }
    }

    @Test func anEmptyWriteWaitsForThoseBeforeIt() throws {
        try withPair { net, connection, peer in
            connection.writeQueueLimit = .max
            var order: [Int] = []
            let large = pattern(8 << 20)
            let writes = [connection.write(large), connection.write(""), connection.write("end"), connection.write("")]
            for (index, write) in writes.enumerated() {
                expect(write.isPending)
                write.done { order.append(index) }.catch { _ in }
            }
            let received = elsewhere { try peer.receive(exactly: large.count + 3) }
            try hang(when(fulfilled: writes), timeout: patience)
            expectEqual(try hang(received, timeout: patience), large + Array("end".utf8))
            try net.loop.turn(.poll)
            expectEqual(order, [0, 1, 2, 3])
        }
    }

    @Test func smallWritesBehindALargeOneLeaveTogether() throws {
        try withPair { net, connection, peer in
            connection.writeQueueLimit = .max
            let large = pattern(8 << 20)
            var writes = [connection.write(large)]
            for number in 0..<1000 { writes.append(connection.write(pattern(8, from: number * 8))) }
            expect(connection.queuedBytes > 8000)
            var settled = 0
            for write in writes { write.done { settled += 1 }.catch { _ in } }
            let received = elsewhere { try peer.receive(exactly: large.count + 8000) }
            try hang(when(fulfilled: writes), timeout: patience)
            expectEqual(try hang(received, timeout: patience), large + pattern(8000))
            try net.loop.run(until: { settled == 1001 })
            expectEqual(settled, 1001)
            expect(net.calls(.send) < 500)
        }
    }

    @Test func twentyThousandWritesEachInTheCompletionOfTheLast() throws {
        try withNetwork(turns: 1000) { net in
            let count = 20_000
            let (connection, peer) = try net.pair()
            let (other, client) = try net.pair()
            func write(from index: Int) -> Promise<Void> {
                guard index < count else { return .value }
                return connection.write([UInt8(truncatingIfNeeded: index)]).then { write(from: index + 1) }
            }
            let received = elsewhere { try peer.receive(exactly: count) }
            try client.send("ping")
            var echoedAfter: Int?
            let all = write(from: 0)
            other.receive().then { other.write($0) }.done { echoedAfter = net.calls(.send) }.catch { _ in }
            try hang(all, timeout: .seconds(60))
            expectEqual(try hang(received, timeout: patience), (0..<count).map { UInt8(truncatingIfNeeded: $0) })
            expectEqual(try client.receive(), Array("ping".utf8))
            #expect(try #require(echoedAfter) < count / 2, "the other connection starves")
        }
    }
}
