@testable import PromisesTestSupport

/// `ServeOptions.cancelsWhenPeerGone`: work for a client that has left is cancelled.
@Suite(.ownThread) struct CancelsWhenPeerGoneTests {
    enum Form: CaseIterable { case promise, async }
    enum End: CaseIterable { case half, close, reset, behindUnreadInput }

    private final class Session {
        let (query, resolver) = Promise<Void>.pending()
        var begun = 0
        var cancelled = 0
        var errors: [any Error] = []
        var answered = 0

        init() { resolver.onCancel { [unowned self] in cancelled += 1 } }
    }

    private func serve(_ listener: Listener, _ form: Form, _ options: ServeOptions, _ session: Session) -> Promise<
        DrainResult
    > {
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
        _ form: Form, _ options: ServeOptions = ServeOptions(cancelsWhenPeerGone: true),
        _ body: (Network, Listener, Session, Peer) throws -> Void
    ) throws {
        try withListener { net, listener in
            let session = Session()
            let served = serve(listener, form, options, session)
            let client = try Peer(to: listener.localAddress, sending: "question\n")
            try net.loop.run(until: { session.begun == 1 })
            try body(net, listener, session, client)
            client.close()
            try net.loop.run(until: { listener.activeConnections == 0 })
            try listener.end(served)
        }
    }

    @Test(arguments: Form.allCases, End.allCases) func workForAPeerThatHasGoneIsCancelled(form: Form, end: End) throws {
        try withServer(form) { net, listener, session, client in
            switch end {
            case .half: client.end()
            case .close: client.close()
            case .reset: client.reset()
            case .behindUnreadInput:
                try client.send("unread")
                client.end()
            }
            try net.loop.run(until: { session.errors.count == 1 })
            expect(session.cancelled == 1 && session.answered == 0)
            if end == .reset {
                expectEqual((session.errors[0] as? SystemError)?.code, ECONNRESET)
            } else {
                expect(session.errors[0] as? PeerGone == .ended)
            }
        }
    }

    @Test(arguments: Form.allCases) func workForAPeerThatWaitsIsNot(form: Form) throws {
        try withServer(form) { net, _, session, client in
            try client.send("more")
            let turns = net.turns { net.settle() }
            expect(turns <= 5 && session.cancelled == 0)
            session.resolver.fulfill()
            let answer = try reply(of: client)
            expectEqual(answer, "answer\n")
            expect(session.answered == 1 && session.errors.isEmpty)
        }
    }

    @Test(arguments: Form.allCases) func withoutTheOptionAnEndCancelsNothing(form: Form) throws {
        try withServer(form, ServeOptions()) { net, _, session, client in
            client.end()
            net.settle()
            expectEqual(session.cancelled, 0)
            session.resolver.fulfill()
            let answer = try reply(of: client)
            expectEqual(answer, "answer\n")
            expect(session.errors.isEmpty)
        }
    }

    /// A handler that reads is notified of the end by its read; its clean-up is not cancelled then.
    @Test(.listener, arguments: Form.allCases) func aHandlerThatHasReadTheEndIsNotCancelled(form: Form) throws {
        let options = ServeOptions(cancelsWhenPeerGone: true)
        var cleanUps: [Bool] = []
        var errors = 0
        let onError = { (_: any Error, _: Connection) in errors += 1 }
        let served =
            switch form {
            case .promise:
                listener.serve(options, onError: onError) { connection -> Promise<Void> in
                    connection.forEachLine { _ in Promise.value }.then { after(.milliseconds(5)) }
                        .done { cleanUps.append(true) }
                }
            case .async:
                listener.serveAsync(options, onError: onError) { connection in
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

    @Test(.inLoop) func onAGroupToo() throws {
        let group = try LoopGroup(loops: 2)
        let listener = try Listener.bind("127.0.0.1:0")
        let (cancelled, resolver) = Promise<Void>.pending()
        let served = listener.serve(
            on: group, ServeOptions(cancelsWhenPeerGone: true), onError: { _, _ in resolver.fulfill() }
        ) { _ in after(.seconds(3600)).asPromise() }
        let client = try Peer(to: listener.localAddress)
        client.close()
        try hang(cancelled, timeout: patience)
        try listener.end(served)
        group.stop()
        group.join()
    }
}
