@testable import PromisesTestSupport

/// A loop that ends releases everything that waits on it. `withNetwork` checks that every descriptor is closed.
struct StreamsAtLoopEndTests {
    /// What waits, with a handler that holds the connection or the listener.
    enum Waiting: CaseIterable { case read, writes, close, echo, serve, accept }

    @Test(arguments: Waiting.allCases) func whatItsHandlersHoldIsReleased(waiting: Waiting) throws {
        weak var witness: AnyObject?
        var outcomes = 0
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            let listener = try net.listen()
            witness = waiting == .serve || waiting == .accept ? listener : connection
            switch waiting {
            case .read:
                connection.read().done { _ in
                    outcomes += 1
                    connection.close()
                }
                try net.loop.turn(.poll)
            case .writes:
                let writes = [connection.write(pattern(8 << 20)).asVoid(), connection.shutdownWrite().asVoid()]
                for write in writes { write.ensure { connection.abort() }.catch { _ in } }
            case .close: connection.close().done { connection.abort() }
            case .echo:
                echo(connection).ensureThen { connection.close() }.catch { _ in }
                try peer.send("x")
                expectEqual(try hang(elsewhere { try peer.receive() }, timeout: patience), [0x78])
                net.settle(.zero)
            case .serve:
                let client = try Peer(to: listener.localAddress)
                listener.serve { echo($0).ensure { listener.close() } }.ensure { listener.close() }.catch { _ in }
                try net.loop.run(until: { listener.activeConnections == 1 })
                withExtendedLifetime(client) {}
            case .accept: listener.accept().ensure { listener.close() }.catch { _ in }
            }
            withExtendedLifetime(peer) {}
        }
        expectEqual(outcomes, 0)
        expect(isGone(witness))
    }

    @Test func anInlineHandlerIsCalledAndCannotBeginAnew() throws {
        nonisolated(unsafe) var seen: ReadOutcome?
        nonisolated(unsafe) var next: ReadOutcome?
        try withNetwork { net in
            let (connection, peer) = try net.pair()
            nonisolated(unsafe) let unsafeConnection = connection
            connection.read().pipe {
                seen = try? $0.get()
                next = unsafeConnection.read().settledValue
            }
            withExtendedLifetime(peer) {}
        }
        expectEqual(seen, failed(ECANCELED))
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
