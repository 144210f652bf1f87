import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Cancelling operations that wait for a descriptor: nothing is lost, and nothing is left.
@Suite struct IOCancellationTests {
    @Test func aCancelledReadLeavesTheBytesToTheNext() throws {
        try withNetwork { network in
            let (connection, peer) = try network.pair()
            let length = connection.receive().map { $0.count }
            length.cancel()
            expect(length.error as? PromiseError == .cancelled)
            try peer.send("hello")
            expectEqual(try hang(connection.receive(), timeout: patience), Array("hello".utf8))
            connection.abort()
        }
    }

    @Test func aReadThatIsCancelledWhileItsBytesHaveArrived() throws {
        try withNetwork { network in
            let (connection, peer) = try network.pair()
            let first = connection.read()
            try peer.send("hello")
            first.cancel()
            expectEqual(try hang(connection.receive(), timeout: patience), Array("hello".utf8))
            connection.abort()
        }
    }

    @Test func anotherListenerKeepsTheRead() throws {
        try withNetwork { network in
            let (connection, peer) = try network.pair()
            let read = connection.receive()
            let one = read.map { $0.count }
            let other = read.map { $0.first }
            one.cancel()
            try peer.send("x")
            expectEqual(try hang(other, timeout: patience), UInt8(ascii: "x"))
            connection.abort()
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

    @Test func aCancelledReadKeepsNoLoopAlive() throws {
        try withNetwork { network in
            let (connection, peer) = try network.pair()
            let read = connection.receive()
            expect(network.loop.isAlive)
            read.cancel()
            expect(!network.loop.isAlive)
            connection.abort()
            withExtendedLifetime(peer) {}
        }
    }
}
