@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Losers that wait for descriptors.
struct RaceLoserIOTests {
    @Test(.network) func aReadIsWithdrawn() throws {
        let (connection, peer) = try net.pair()
        let read = connection.receive()
        let limit = Promise.value([UInt8]())
        expectEqual(race(read, limit).settledValue, [])
        try net.loop.turn(.poll)
        expect(read.error as? PromiseError == .cancelled && !net.loop.isAlive)
        try peer.send("hello")
        expectEqual(try hang(connection.receive(), timeout: patience), Array("hello".utf8))
        connection.abort()
    }

    @Test(.network) func aConnectClosesItsDescriptor() throws {
        let listener = try net.listen()
        let attempts = (0..<3).map { _ in connect(to: listener.localAddress) }
        let winner = try hang(race(attempts), timeout: patience)
        let rejected = attempts.count { $0.isRejected }
        expectEqual(rejected, 2)
        winner.abort()
        listener.close()
        net.settle(.zero)
        expect(!net.loop.isAlive)
    }
}
