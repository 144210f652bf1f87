@testable import PromisesTestSupport

/// Cancelling operations that wait for a descriptor: nothing is lost, and nothing is left.
struct IOCancellationTests {
    @Test func aReadThatIsCancelledWhileItsBytesHaveArrived() throws {
        try withPair { _, connection, peer in
            let first = connection.read()
            try peer.send("hello")
            first.cancel()
            expectEqual(try hang(connection.receive(), timeout: patience), Array("hello".utf8))
        }
    }

    @Test func anotherListenerKeepsTheRead() throws {
        try withPair { _, connection, peer in
            let read = connection.receive()
            let one = read.map { $0.count }
            let other = read.map { $0.first }
            one.cancel()
            try peer.send("x")
            expectEqual(try hang(other, timeout: patience), UInt8(ascii: "x"))
        }
    }

    @Test func aCancelledAcceptIsPassedOver() throws {
        try withNetwork { network in
            let listener = try network.listen()
            let first = listener.accept()
            let second = listener.accept()
            first.cancel()
            let peer = try Peer(to: listener.localAddress)
            let connection = try hang(second, timeout: patience)
            expect(first.error as? PromiseError == .cancelled)
            connection.abort()
            listener.close()
            withExtendedLifetime(peer) {}
        }
    }

    @Test func aCancelledConnectClosesItsDescriptor() throws {
        try withNetwork { network in
            let listener = try network.listen()
            let attempt = connect(to: listener.localAddress)
            let chain = attempt.then { $0.receive() }
            chain.cancel()
            expect(attempt.error as? PromiseError == .cancelled)
            listener.close()
            network.settle(.zero)
            expect(!network.loop.isAlive)
        }
    }
}
