@testable import PromisesTestSupport

struct WriteTests {
    @Test(.pair) func anEmptyWriteSendsNothing() throws {
        let empty = [connection.write(""), connection.write([UInt8]()), connection.write([[UInt8]]())]
        try hang(when(fulfilled: empty), timeout: patience)
        expectEqual(net.calls(.send), 0)
        try hang(connection.write("x"), timeout: patience)
        expectEqual(try peer.receive(), [0x78])
    }

    @Test(.network(turns: 1000)) func twentyThousandWritesEachInTheCompletionOfTheLast() throws {
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
        expect(try #require(echoedAfter) < count / 2, "the other connection starves")
    }
}
