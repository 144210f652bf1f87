import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// A loop that ends releases everything that waits on it. `withNetwork` checks that every descriptor is closed.
@Suite struct StreamsAtLoopEndTests {
    @Test func aWaitingReadWhoseHandlerHoldsTheConnection() throws {
        weak var witness: Connection?
        var outcomes = 0
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            witness = connection
            connection.read().done { _ in
                outcomes += 1
                connection.close()
            }
            try net.loop.turn(.poll)
            withExtendedLifetime(peer) {}
        }
        expectEqual(outcomes, 0)
        expect(isGone(witness))
    }

    @Test func waitingWritesWhoseHandlersHoldTheConnection() throws {
        weak var witness: Connection?
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            witness = connection
            let writes = [connection.write(pattern(8 << 20)).asVoid(), connection.shutdownWrite().asVoid()]
            for write in writes { write.ensure { connection.abort() }.catch { _ in } }
            withExtendedLifetime(peer) {}
        }
        expect(isGone(witness))
    }

    @Test func aClosingWhoseHandlerHoldsTheConnection() throws {
        weak var witness: Connection?
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            witness = connection
            connection.close().done { connection.abort() }
            withExtendedLifetime(peer) {}
        }
        expect(isGone(witness))
    }

    @Test func aServingListenerWithItsConnections() throws {
        weak var witness: Listener?
        try withNetwork { net in
            let listener = try net.listen()
            witness = listener
            let client = try Peer(to: listener.localAddress)
            listener.serve { echo($0).ensure { listener.close() } }.ensure { listener.close() }.catch { _ in }
            try net.loop.run(until: { listener.activeConnections == 1 })
            withExtendedLifetime(client) {}
        }
        expect(isGone(witness))
    }

    @Test func aWaitingAcceptWhoseHandlerHoldsTheListener() throws {
        weak var witness: Listener?
        try withNetwork { net in
            let listener = try net.listen()
            witness = listener
            listener.accept().ensure { listener.close() }.catch { _ in }
        }
        expect(isGone(witness))
    }

    @Test func anEchoThatHasGoneRound() throws {
        weak var witness: Connection?
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            witness = connection
            echo(connection).ensureThen { connection.close() }.catch { _ in }
            try peer.send("x")
            let reply = elsewhere { try peer.receive() }
            expectEqual(try hang(reply, timeout: patience), [0x78])
            net.settle(.zero)
        }
        expect(isGone(witness))
    }

    @Test func anInlineHandlerIsToldAndCannotBeginAnew() throws {
        nonisolated(unsafe) var told: ReadOutcome?
        nonisolated(unsafe) var next: ReadOutcome?
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            nonisolated(unsafe) let unsafeConnection = connection
            connection.read().pipe {
                told = try? $0.get()
                next = unsafeConnection.read().settledValue
            }
            withExtendedLifetime(peer) {}
        }
        expectEqual(told, failed(ECANCELED))
        expectEqual(next, failed(EBADF))
    }

    @Test func aConnectThatIsUnderWay() throws {
        var attempt: Promise<Connection>?
        try withNetwork { net in
            let hole = try net.listen(backlog: 0)
            let filler = try Peer(to: hole.localAddress)
            attempt = connect(to: hole.localAddress, timeout: .seconds(10))
            expectEqual(attempt?.isPending, true)
            withExtendedLifetime(filler) {}
        }
        #expect(code(try #require(attempt)) == ECANCELED)
    }
}

/// A function, since the object itself should not be printed.
private func isGone(_ witness: AnyObject?) -> Bool { witness == nil }
