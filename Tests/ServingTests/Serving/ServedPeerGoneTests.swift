@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Handlers, with a promise or async, that neither read nor write while their client leaves or their connection fails.
@Suite(.ownThread) struct ServedPeerGoneTests {
    enum Form: CaseIterable { case promise, async }
    enum End: CaseIterable { case half, close, reset, behindUnreadInput, resetBehindUnreadInput }

    private static var option: ServeOptions { ServeOptions(cancelsWhenPeerGone: true) }

    private final class Session {
        let (query, resolver) = Promise<Void>.pending()
        var begun = 0
        var cancelled = 0
        var errors: [any Error] = []
        var answered = 0

        init() { resolver.onCancel { [unowned self] in cancelled += 1 } }

        var codes: [CInt?] { errors.map { ($0 as? SystemError)?.code } }
    }

    /// Answers a line after a query.
    private func serve(
        _ listener: Listener, _ form: Form, _ options: ServeOptions, _ session: Session
    ) -> Promise<DrainResult> {
        let onError = { (error: any Error, _: Connection) in session.errors.append(error) }
        switch form {
        case .promise:
            return listener.serve(options, onError: onError) { connection -> Promise<Void> in
                connection.readLine().then { _ -> Promise<Void> in
                    session.begun += 1
                    return session.query
                }.then { connection.write("answer\n") }.done { session.answered += 1 }
            }
        case .async:
            return listener.serveAsync(options, onError: onError) { connection in
                _ = try await connection.readLine().value
                session.begun += 1
                try await session.query.value
                try await connection.write("answer\n").value
                session.answered += 1
            }
        }
    }

    private func withServer(
        _ form: Form, _ options: ServeOptions = ServeOptions(), at address: SocketAddress = .loopback(port: 0),
        _ body: (Network, Session, Peer) throws -> Void
    ) throws {
        try withNetwork { net in
            let listener = try Listener.bind(address)
            let session = Session()
            let served = serve(listener, form, options, session)
            let client = try Peer(to: listener.localAddress, sending: "question\n")
            try net.loop.run(until: { session.begun == 1 })
            try body(net, session, client)
            client.close()
            try net.loop.run(until: { listener.activeConnections == 0 })
            try listener.end(served)
        }
    }

    /// A failure cancels an async handler without the option too.
    static let departures: [(Form, hasOption: Bool, End)] =
        Form.allCases.flatMap { form in End.allCases.map { (form, true, $0) } }
        + [(.async, false, .reset), (.async, false, .resetBehindUnreadInput)]

    @Test(arguments: departures)
    func workForAPeerThatHasGoneIsCancelled(form: Form, hasOption: Bool, end: End) throws {
        try withServer(form, hasOption ? Self.option : ServeOptions()) { net, session, client in
            if end == .behindUnreadInput || end == .resetBehindUnreadInput {
                try client.send("unread")
                let turns = net.turns { net.settle() }
                expect(turns <= 5)
            }
            switch end {
            case .half, .behindUnreadInput: client.end()
            case .close: client.close()
            case .reset, .resetBehindUnreadInput: client.reset()
            }
            try net.loop.run(until: { session.errors.count == 1 })
            expect(session.cancelled == 1 && session.answered == 0)
            if end == .reset || end == .resetBehindUnreadInput {
                expectEqual(session.codes, [ECONNRESET])
            } else {
                expect(session.errors[0] as? PeerGone == .ended)
            }
        }
    }

    /// Without the option, an end is none: the client waits for its answer.
    @Test(arguments: Form.allCases, [true, false]) func workForAPeerThatWaitsIsNot(form: Form, hasOption: Bool) throws {
        try withServer(form, hasOption ? Self.option : ServeOptions()) { net, session, client in
            // The wake-up, the timer, the listener and the connection, as without a watch of the client.
            expect(hasOption || net.calls(.epollControl) <= 4)
            if hasOption { try client.send("more") } else { client.end() }
            let turns = net.turns { net.settle() }
            expect(turns <= 5 && session.cancelled == 0)
            session.resolver.fulfill()
            let answer = try reply(of: client)
            expectEqual(answer, "answer\n")
            expect(session.answered == 1 && session.errors.isEmpty)
        }
    }

    /// The client's input is still handled, as in TCP, where such an end is a FIN.
    @Test func theEndOfAUnixClientDoesNotCancelNorDoesTheLoopSpin() throws {
        let folder = Folder()
        try withServer(.async, at: folder.address("socket")) { net, session, client in
            client.close()
            let turns = net.turns { net.settle() }
            expect(turns < 10 && session.cancelled == 0)
            session.resolver.fulfill()
            try net.loop.run(until: { !session.errors.isEmpty })
            expectEqual(session.codes, [EPIPE])
        }
    }

    /// A handler that reads is notified of the end by its read; its clean-up is not cancelled then.
    @Test(.listener, arguments: Form.allCases) func aHandlerThatHasReadTheEndIsNotCancelled(form: Form) throws {
        var cleanUps: [Bool] = []
        var errors = 0
        let onError = { (_: any Error, _: Connection) in errors += 1 }
        let served =
            switch form {
            case .promise:
                listener.serve(Self.option, onError: onError) { connection -> Promise<Void> in
                    connection.forEachLine { _ in Promise.value }.then { after(.milliseconds(5)) }
                        .done { cleanUps.append(true) }
                }
            case .async:
                listener.serveAsync(Self.option, onError: onError) { connection in
                    for try await _ in connection.lines {}
                    try await firstly { after(.milliseconds(5)).asPromise() }.value
                    cleanUps.append(!Task.isCancelled)
                }
            }
        for count in 1...3 {
            let client = try Peer(to: listener.localAddress, sending: "a\nb\n")
            client.close()
            try net.loop.run(until: { cleanUps.count == count || errors > 0 })
        }
        expect(cleanUps == [true, true, true] && errors == 0)
        try listener.end(served)
    }

    /// Its read tells it of the failure, and it does its clean-up in a task that is not cancelled.
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
    @Test(.listener) func theFailureOfGatheredAnswersCancelsIt() throws {
        let session = Session()
        let served = listener.serveAsync(onError: { error, _ in session.errors.append(error) }) { connection in
            _ = try await connection.readLine().value
            net.kernel.send = { _, _, _ in -Int(EPIPE) }
            // Gathered, since another line has arrived with the first.
            try await connection.write("answer\n").value
            try await session.query.value
        }
        let client = try Peer(to: listener.localAddress, sending: "one\ntwo\n")
        try net.loop.run(until: { !session.errors.isEmpty })
        expectEqual(session.codes, [EPIPE])
        expectEqual(session.cancelled, 1)
        try listener.end(served, closing: [client])
    }

    /// Without a further event: that would be reported as the peer's end.
    @Test(.listener) func aResetAfterTheErrorOfAFilterIsReported() throws {
        struct Refusing: ConnectionFilter {
            func receive(_ bytes: RawSpan, _ output: inout FilterOutput) throws { throw Flaw() }
            func write(_ bytes: RawSpan, _ output: inout FilterOutput) {}
        }
        var waiting: CheckedContinuation<Void, Never>?
        let session = Session()
        let onError = { (error: any Error, _: Connection) in session.errors.append(error) }
        let served = listener.serveAsync(Self.option, onError: onError) { connection in
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
        try net.loop.run(until: { !session.errors.isEmpty })
        expectEqual(session.codes, [ECONNRESET])
        try listener.end(served)
    }

    /// The bytes of a broadcast wait without a promise.
    @Test(.listener(.virtual, turns: 4000), arguments: ["reset", "idle"])
    func aFailureIsFoundWhereNoPromiseWaits(how: String) throws {
        let block = [UInt8](repeating: 0, count: 1 << 20)
        let session = Session()
        let served = listener.serveAsync(onError: { error, _ in session.errors.append(error) }) { connection in
            if how == "idle" { connection.idleTimeout = .seconds(10) }
            if how == "reset" { for _ in 0..<16 { broadcast(block, to: [connection], overflow: .drop) } }
            try await session.query.value
        }
        let client = try Peer(to: listener.localAddress, receiveBuffer: 4096)
        try net.loop.run(until: { listener.activeConnections == 1 })
        try net.loop.turn(.poll)
        if how == "reset" { client.reset() }
        try net.loop.run(until: { !session.errors.isEmpty })
        expectEqual(session.codes, [how == "reset" ? ECONNRESET : ETIMEDOUT])
        try listener.end(served, closing: [client])
    }
}
