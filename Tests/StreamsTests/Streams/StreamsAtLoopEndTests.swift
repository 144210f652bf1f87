@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A loop that ends releases everything that waits on it. `withNetwork` checks that every descriptor is closed.
struct StreamsAtLoopEndTests {
    /// What waits, with a handler that holds the connection or the listener.
    enum Waiting: CaseIterable {
        case read, chunks, pausedChunks, writes, heldWrite, close, echo, peerGone, serve, accept
    }

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
            case .peerGone:
                connection.peerGone().done { _ in
                    outcomes += 1
                    connection.close()
                }
            case .chunks, .pausedChunks:
                let chunks = connection.forEachChunk { _ -> Promise<Void> in
                    _ = connection
                    return waiting == .pausedChunks ? after(.seconds(3600)).asPromise() : .value
                }
                chunks.catch(policy: .allErrors) { _ in }
                try net.deliver("x", from: peer)
                try net.loop.run(until: { connection.bytesReceived == 1 })
            case .heldWrite:
                // The second of a turn is sent when that ends.
                connection.write("1").cauterize()
                connection.write("2").ensure { connection.abort() }.ignoringErrors()
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
                _ = try Peer(to: listener.localAddress)
                listener.serve { echo($0).ensure { listener.close() } }.ensure { listener.close() }.catch { _ in }
                try net.loop.run(until: { listener.activeConnections == 1 })
            case .accept: listener.accept().ensure { listener.close() }.catch { _ in }
            }
        }
        expectEqual(outcomes, 0)
        expect(isGone(witness))
    }

    @Test func anInlineHandlerIsCalledAndCannotBeginAnew() throws {
        nonisolated(unsafe) var seen: ReadOutcome?
        nonisolated(unsafe) var next: ReadOutcome?
        try withNetwork { net in
            let (connection, _) = try net.pair()
            nonisolated(unsafe) let unsafeConnection = connection
            connection.read().pipe {
                seen = try? $0.get()
                next = unsafeConnection.read().settledValue
            }
        }
        expectEqual(seen, failed(ECANCELED))
        expectEqual(next, failed(EBADF))
    }
}
