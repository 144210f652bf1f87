@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Servers that signals stop. No other test of this process uses SIGCONT and SIGPWR.
@Suite(.serialized) struct ServeUntilStoppedTests {
    static let signals = [SIGCONT, SIGPWR]

    /// The process's actions for the signals.
    var actions: [Int] {
        Self.signals.map { signal in
            var action = sigaction()
            sigaction(signal, nil, &action)
            return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        }
    }

    /// A network on a thread that accepts the signals: the threads of tests leave them to others. Afterwards the
    /// previous actions for the signals must be restored.
    func withSignals(clock: VirtualClock? = VirtualClock(), _ body: (Network) throws -> Void) throws {
        let before = actions
        try takingSignals { try withNetwork(clock: clock, body) }
        expectEqual(actions, before)
    }

    /// Only these: another signal belongs to another test, and would interrupt the waits of this thread.
    func takingSignals(_ body: () throws -> Void) rethrows {
        var taken = sigset_t()
        var found = sigset_t()
        sigemptyset(&taken)
        for signal in Self.signals { sigaddset(&taken, signal) }
        pthread_sigmask(SIG_UNBLOCK, &taken, &found)
        defer { pthread_sigmask(SIG_SETMASK, &found, nil) }
        try body()
    }

    /// A server that the signals stop, and clients whose first byte it has read.
    struct Server {
        let net: Network
        let listener: Listener
        let served: Promise<DrainResult>
        let clients: [Peer]
        /// The time when the clients had been read.
        let begin: LoopInstant

        /// The virtual time since then.
        var elapsed: Duration { begin.duration(to: net.loop.now) }
    }

    /// Serves until one of the signals, with a client for each character of `kinds`; see `serveByFirstByte`.
    func withServer(
        _ kinds: String, at address: String = "127.0.0.1:0", drainTimeout: Duration = .seconds(60),
        onSignal: ((CInt) -> Void)? = nil, _ body: (Server) throws -> Void
    ) throws {
        try withSignals { net in
            let listener = try net.listen(address)
            let served = listener.serve(
                ServeOptions(stopSignals: Self.signals, drainTimeout: drainTimeout, onSignal: onSignal),
                handler: serveByFirstByte)
            let clients = try net.connectClients(kinds, to: listener)
            try body(Server(net: net, listener: listener, served: served, clients: clients, begin: net.loop.now))
        }
    }

    /// The loop ends the connection of a client that pauses, and the client half-closes in turn.
    func expectEnd(of client: Peer, _ net: Network) throws {
        hang(after(.milliseconds(220)))
        expectEqual(try client.receive(), [])
        net.end(client) { $0.close() }
    }

    func counts(_ result: DrainResult?) -> [Int]? { result.map { [$0.idle, $0.finished, $0.aborted] } }

    /// A listener and the signals that stop it refer to each other.
    @Test(arguments: [false, true]) func aListenerIsReleasedWhoseLoopEnds(duringItsDrain: Bool) throws {
        weak var released: Listener?
        var served: Promise<DrainResult>?
        _ = try logged {
            try withServer("b") { server in
                released = server.listener
                served = server.served
                if duringItsDrain {
                    raise(SIGCONT)
                    try server.net.loop.run(until: { server.listener.isDraining })
                }
            }
        }
        expect(released == nil)
        expectEqual(served?.isRejected, true)
    }

    @Test(arguments: signals) func theFirstSignalDrains(signal: CInt) throws {
        let before = actions
        try withServer("iib") { server in
            expect(actions != before)
            expectEqual(server.begin, LoopInstant(nanoseconds: 0))
            raise(signal)
            server.net.end(server.clients[2])
            for client in server.clients[..<2] { try expectEnd(of: client, server.net) }
            expectEqual(try counts(hang(server.served)), [2, 1, 0])
            expect(server.elapsed < .milliseconds(500))
            expectEqual(try server.clients[2].readToEnd(), Array("done".utf8))
            expectEqual(actions, before)
            expect(server.net.loop.metrics.signalWatches == 0 && !server.net.loop.isAlive)
        }
    }

    @Test func theDeadlineAborts() throws {
        try withServer("bs", drainTimeout: .milliseconds(300)) { server in
            raise(SIGCONT)
            hang(after(.milliseconds(299)))
            expect(server.served.isPending)
            server.clients[0].close()
            let result = try hang(server.served)
            expectEqual(counts(result), [0, 1, 1])
            expectEqual(server.elapsed, .milliseconds(300))
            expectEqual(server.clients[1].failureOfReading(), ECONNRESET)
            expect(!server.net.loop.isAlive)
        }
    }

    @Test(arguments: signals) func theSecondSignalAbortsAtOnce(second: CInt) throws {
        let port = try ReservedPort()
        var arrived: [CInt] = []
        try withServer(
            "ss", at: "\(port.address)", drainTimeout: .seconds(3600), onSignal: { arrived.append($0) }
        ) { server in
            raise(SIGCONT)
            hang(after(.seconds(1)))
            expectEqual(arrived, [SIGCONT])
            port.expectRefusal()
            expect(server.served.isPending && server.listener.activeConnections == 2)
            raise(second)
            let result = try hang(server.served)
            expectEqual(counts(result), [0, 0, 2])
            expectEqual(arrived, [SIGCONT, second])
            expectEqual(server.elapsed, .seconds(1))
            for client in server.clients { expectEqual(client.failureOfReading(), ECONNRESET) }
            expect(!server.net.loop.isAlive)
        }
    }

    /// As `timeout` of coreutils sends them: to its child, and then to its own group.
    @Test func signalsInQuickSuccessionAreOne() throws {
        var arrived = 0
        try withServer("s", drainTimeout: .seconds(3600), onSignal: { _ in arrived += 1 }) { server in
            raise(SIGPWR)
            raise(SIGCONT)
            hang(after(.milliseconds(99)))
            raise(SIGCONT)
            try server.net.loop.turn(.poll)
            expect(server.served.isPending && server.elapsed == .milliseconds(99))
            hang(after(.milliseconds(1)))
            expect(server.served.isPending && arrived == 1)
            raise(SIGCONT)
            let result = try hang(server.served)
            expectEqual(counts(result), [0, 0, 1])
            expect(server.elapsed == .milliseconds(100) && arrived == 2)
            expectEqual(server.clients[0].failureOfReading(), ECONNRESET)
        }
    }

    @Test func aSignalBeforeTheFirstConnectionEndsItAtOnce() throws {
        try withSignals { net in
            let listener = try net.listen()
            after(.milliseconds(1)).done { raise(SIGCONT) }
            let result = try hang(
                listener.serve(
                    ServeOptions(stopSignals: Self.signals, drainTimeout: .seconds(3600)), handler: serveByFirstByte))
            expectEqual(counts(result), [0, 0, 0])
            expectEqual(code(listener.accept()), EBADF)
            expect(!net.loop.isAlive)
        }
    }

    /// Signals that arrive while a handler turns the loop: the first one accepts the clients that wait, and the second one
    /// aborts them, also those whose handlers have not returned yet.
    @Test(arguments: [false, true]) func signalsArriveInAHandler(both: Bool) throws {
        try withSignals { net in
            let listener = try net.listen()
            var calls = 0
            let served = listener.serve(
                ServeOptions(stopSignals: Self.signals, drainTimeout: .seconds(3600))
            ) { connection -> Promise<Void> in
                calls += 1
                if calls == 1 { raise(SIGCONT) }
                if calls == 2 && both {
                    hang(after(.milliseconds(100)))
                    raise(SIGPWR)
                }
                if calls <= 2 { try net.loop.turn(.poll) }
                return echo(connection)
            }
            let clients = try (0..<5).map { _ in try Peer(to: listener.localAddress) }
            try net.loop.run(until: { listener.isDraining })
            expectEqual(net.ledger.accepted.count, 5)
            if !both {
                for client in clients { client.close() }
                for fd in net.ledger.accepted { awaitArrival(of: POLLIN, at: fd) }
            }
            expectEqual(try counts(hang(served, timeout: .seconds(60))), both ? [0, 0, 5] : [0, 5, 0])
            try net.loop.run(until: { listener.activeConnections == 0 })
        }
    }

    /// Copies of the signal would end a process that has stopped in order, as those of `timeout` of coreutils.
    @Test(arguments: [false, true]) func aCopyOfTheSignalIsIgnoredAfterTheEndToo(ofSeveral: Bool) throws {
        let before = actions
        try withSignals { net in
            let listener = try net.listen()
            let served = listener.serve(
                ServeOptions(stopSignals: ofSeveral ? [] : Self.signals), handler: serveByFirstByte)
            let drained =
                ofSeveral ? Listener.drain([listener], atFirstOf: Self.signals, deadline: .seconds(1)) : served
            raise(SIGPWR)
            try hang(drained)
            try hang(served)
            expect(actions != before && !net.loop.isAlive)
            raise(SIGPWR)
            try net.loop.turn(.poll)
            hang(after(.milliseconds(99)))
            expect(actions != before)
            hang(after(.milliseconds(1)))
            expectEqual(actions, before)
            expect(net.loop.metrics.signalWatches == 0 && net.loop.nextDeadline == nil)
        }
    }

    @Test(arguments: [false, true]) func withoutASignalItEndsWithTheListenerAndWatchesNoMore(fails: Bool) throws {
        try withServer("") { server in
            if fails {
                server.net.kernel.accept = { _, _ in -Int(EINVAL) }
                let client = try Peer(to: server.listener.localAddress)
                expectEqual(try rejection(of: server.served), EINVAL)
                client.close()
            } else {
                server.listener.close()
                expectEqual(try counts(hang(server.served)), [0, 0, 0])
            }
            expect(server.net.loop.metrics.signalWatches == 0 && !server.net.loop.isAlive)
        }
    }

    @Test(arguments: [false, true])
    func cancelledItClosesTheListenerAndWatchesNoMoreButDoesNotDrain(byTheSignalsHandler: Bool) throws {
        let before = actions
        var served: Promise<DrainResult>?
        try withServer("b", drainTimeout: .seconds(3600), onSignal: { _ in served?.cancel() }) { server in
            served = server.served
            if byTheSignalsHandler {
                raise(SIGCONT)
                try server.net.loop.turn(.wait)
            } else {
                served?.cancel()
                expectEqual(actions, before)
            }
            expect(server.served, failsWith: PromiseError.cancelled)
            expectEqual(code(server.listener.accept()), EBADF)
            expectEqual(server.listener.activeConnections, 1)
            server.clients[0].end()
            try server.net.loop.run()
            expectEqual(try server.clients[0].readToEnd(), Array("done".utf8))
            served = nil
        }
    }

    @Test func cancelledWhileItDrainsTheDrainContinues() throws {
        try withServer("s", drainTimeout: .seconds(2)) { server in
            raise(SIGCONT)
            hang(after(.seconds(1)))
            server.served.cancel()
            expectEqual(server.net.loop.metrics.signalWatches, 0)
            try server.net.loop.run()
            expectEqual(server.elapsed, .seconds(2))
            expectEqual(server.clients[0].failureOfReading(), ECONNRESET)
        }
    }

    @Test func whatCannotBeginIsRefusedAndLeavesTheListenerAlone() throws {
        try withSignals { net in
            let listener = try net.listen()
            let sessions = { (signals: [CInt], limit: Int) in
                listener.serve(
                    ServeOptions(maxConnections: limit, stopSignals: signals, drainTimeout: .seconds(60)),
                    handler: serveByFirstByte)
            }
            expectEqual(code(sessions([SIGCONT, SIGKILL], 1)), EINVAL)
            expectEqual(code(sessions([SIGCONT], 0)), EINVAL)
            expectEqual(net.loop.metrics.signalWatches, 0)
            let served = listener.serve(handler: serveByFirstByte)
            expect(served.isPending)
            expectEqual(code(sessions([SIGCONT], 1)), EBUSY)
            expect(served.isPending)
            expectEqual(net.loop.metrics.signalWatches, 0)
            try listener.end(served)
        }
    }
}
