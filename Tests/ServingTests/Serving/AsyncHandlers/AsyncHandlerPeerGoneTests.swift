@testable import PromisesTestSupport

/// An async handler that neither reads nor writes while its client ends or fails.
@Suite(.ownThread) struct AsyncHandlerPeerGoneTests {
    private final class Session {
        let (gate, open) = Promise<Void>.pending()
        var hasBegun = false
        var ends: [String] = []
        var errors: [String] = []
    }

    private func serve(_ listener: Listener, _ session: Session) -> Promise<DrainResult> {
        listener.serveAsync(onError: { error, _ in session.errors.append("\((error as? SystemError)?.code ?? 0)") }) {
            connection in
            let question = try await connection.readLine().value ?? ""
            session.hasBegun = true
            do { try await session.gate.value } catch {
                session.ends.append("\(type(of: error)) \(Task.isCancelled)")
                throw error
            }
            try await connection.write("answer to \(question)\n").value
            session.ends.append("answered")
        }
    }

    private func begin(
        at address: SocketAddress? = nil, _ body: (Network, Listener, Session, Peer) throws -> Void
    ) throws {
        try withNetwork { network in
            let listener = try address.map { try Listener.bind($0) } ?? network.listen()
            let session = Session()
            let served = serve(listener, session)
            let client = try Peer(to: listener.localAddress, sending: "question\n")
            try network.loop.run(until: { session.hasBegun })
            try body(network, listener, session, client)
            client.close()
            try listener.end(served)
        }
    }

    /// The client's input is still handled, as in TCP, where such an end is a FIN.
    @Test func theEndOfAUnixClientDoesNotNorDoesTheLoopSpin() throws {
        let folder = Folder()
        try begin(at: folder.address("socket")) { network, _, session, client in
            client.close()
            let turns = network.turns { network.settle() }
            expect(turns < 10)
            expectEqual(session.ends, [])
            session.open.fulfill()
            try network.loop.run(until: { !session.errors.isEmpty })
            expectEqual(session.errors, ["\(EPIPE)"])
        }
    }

    /// The next, still unread request neither wakes the loop repeatedly nor hides the reset.
    @Test(arguments: [false, true]) func aResetCancelsItAndIsReported(behindInput: Bool) throws {
        try begin { network, _, session, client in
            if behindInput { try client.send("another\n") }
            let turns = network.turns { network.settle() }
            expect(turns < 10)
            client.reset()
            try network.loop.run(until: { !session.ends.isEmpty })
            expectEqual(session.ends, ["CancellationError true"])
            try network.loop.run(until: { !session.errors.isEmpty })
            expectEqual(session.errors, ["\(ECONNRESET)"])
        }
    }

    /// Its read tells it, and it is not cancelled before.
    @Test(.listener, arguments: [false, true])
    func anAbortRejectsItsReadWithTheReason(cancelsWhenPeerGone: Bool) throws {
        var reading: Connection?
        var ends: [String] = []
        let served = listener.serveAsync(ServeOptions(cancelsWhenPeerGone: cancelsWhenPeerGone), onError: { _, _ in }) {
            connection in
            reading = connection
            do { _ = try await connection.receive().value } catch {
                ends.append("\((error as? SystemError)?.code ?? 0)")
            }
        }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { reading != nil })
        net.settle()
        let piece = [UInt8](repeating: 0, count: 1 << 20)
        while reading?.post(piece, overflow: .abort) == true {}
        try net.loop.run(until: { !ends.isEmpty })
        expectEqual(ends, ["\(ENOBUFS)"])
        reading = nil
        client.close()
        try listener.end(served)
    }

    /// The gathered answers have been fulfilled before the kernel refuses them.
    @Test func theFailureOfGatheredAnswersCancelsIt() throws {
        try withNetwork { network in
            let (gate, resolver) = Promise<Void>.pending()
            var ends: [String] = []
            var errors: [CInt] = []
            let listener = try network.listen()
            let served = listener.serveAsync(
                onError: { error, _ in errors.append((error as? SystemError)?.code ?? 0) }
            ) { connection in
                _ = try await connection.readLine().value
                network.kernel.send = { _, _, _ in -Int(EPIPE) }
                // Gathered, since another line has arrived with the first.
                try await connection.write("answer\n").value
                do { try await gate.value } catch {
                    ends.append("\(type(of: error)) \(Task.isCancelled)")
                    throw error
                }
            }
            let client = try Peer(to: listener.localAddress, sending: "one\ntwo\n")
            try network.loop.run(until: { !ends.isEmpty })
            expectEqual(ends, ["CancellationError true"])
            try network.loop.run(until: { !errors.isEmpty })
            expectEqual(errors, [EPIPE])
            resolver.fulfill()
            client.close()
            try listener.end(served)
        }
    }

    /// Without a further event: that would be reported as the peer's end.
    @Test(.listener) func aResetAfterTheErrorOfAFilterIsReported() throws {
        struct Refusing: ConnectionFilter {
            func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws { throw Flaw() }
            func write(_ bytes: RawSpan, _ output: inout FilterOutput) {}
        }
        var waiting: CheckedContinuation<Void, Never>?
        var errors: [CInt] = []
        let served = listener.serveAsync(
            ServeOptions(cancelsWhenPeerGone: true),
            onError: { error, _ in errors.append((error as? SystemError)?.code ?? 0) }
        ) { connection in
            let filtered = try await connection.filter(Refusing()).value
            _ = try? await filtered.receive().value
            // It goes on although it is cancelled.
            await withCheckedContinuation { waiting = $0 }
            try Task.checkCancellation()
        }
        let client = try Peer(to: listener.localAddress, sending: "x")
        try net.loop.run(until: { waiting != nil })
        client.reset()
        net.settle()
        waiting?.resume()
        try net.loop.run(until: { !errors.isEmpty })
        expectEqual(errors, [ECONNRESET])
        try listener.end(served)
    }

    /// A handler that learns of it by its own read does its clean-up in a task that is not cancelled.
    @Test(.listener) func aReadThatFailsIsReportedByItselfAlone() throws {
        var ends: [String] = []
        let served = listener.serveAsync { connection in
            do { _ = try await connection.readLine().value } catch {
                ends.append("\((error as? SystemError)?.code ?? 0) \(Task.isCancelled)")
            }
        }
        let client = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        client.reset()
        try net.loop.run(until: { !ends.isEmpty })
        expectEqual(ends, ["\(ECONNRESET) false"])
        try listener.end(served)
    }

    @Test func watchingCostsNoSystemCall() throws {
        try begin { network, _, session, client in
            let calls = network.calls(.epollControl)
            session.open.fulfill()
            let answer = try reply(of: client)
            expectEqual(answer, "answer to question\n")
            // The wake-up, the timer, the listener and the connection, as without the watch.
            expect(calls <= 4)
        }
    }

    private func expectCancellation(
        clock: VirtualClock?, _ prepare: @escaping (Connection) -> Void, _ fail: (Network, Peer) throws -> Void
    ) throws {
        try withListener(clock: clock, turns: 4000) { network, listener in
            var errors: [CInt] = []
            let note = { (error: any Error, _: Connection) in errors.append((error as? SystemError)?.code ?? 0) }
            let served = listener.serveAsync(onError: note) { connection in
                prepare(connection)
                _ = try await firstly { endless() }.value
            }
            let client = try Peer(to: listener.localAddress, receiveBuffer: 4096)
            try network.loop.run(until: { listener.activeConnections == 1 })
            try network.loop.turn(.poll)
            try fail(network, client)
            expectEqual(errors, [clock == nil ? ECONNRESET : ETIMEDOUT])
            client.close()
            _ = hang(listener.drain(deadline: .zero))
            try hang(served, timeout: patience)
        }
    }

    /// The bytes of a broadcast wait, without a promise.
    @Test func aResetIsFoundWhereOnlyABroadcastWaits() throws {
        let block = [UInt8](repeating: 0, count: 1 << 20)
        try expectCancellation(clock: nil) { connection in
            for _ in 0..<16 { broadcast(block, to: [connection], overflow: .drop) }
        } _: { network, client in
            client.reset()
            try network.loop.run(until: { network.calls(.close) > 0 })
        }
    }

    @Test func theIdleTimeOutCancelsIt() throws {
        try expectCancellation(clock: VirtualClock()) { connection in
            connection.idleTimeout = .seconds(10)
        } _: { _, _ in
            hang(after(.seconds(60)))
        }
    }
}
