import Glibc
import Promises
import Reactor
import Testing

/// Servers that signals stop. No other test of this process uses SIGCONT and SIGPWR.
@Suite(.serialized) struct ServeUntilStoppedTests {
    static let signals = [SIGCONT, SIGPWR]

    /// A network on a thread that takes signals: the threads on which tests run leave them to others. Afterwards the
    /// actions for the signals must be those from before.
    func withSignals(clock: VirtualClock? = VirtualClock(), _ body: (Network) throws -> Void) throws {
        let before = Self.signals.map(action)
        try takingSignals { try withNetwork(clock: clock, body) }
        #expect(Self.signals.map(action) == before)
    }

    func takingSignals(_ body: () throws -> Void) rethrows {
        var all = sigset_t()
        var found = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_UNBLOCK, &all, &found)
        defer { pthread_sigmask(SIG_SETMASK, &found, nil) }
        try body()
    }

    func action(for signal: CInt) -> Int {
        var action = sigaction()
        sigaction(signal, nil, &action)
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    }

    /// Does what the first byte says: `i` waits for more, `b` answers after 100 ms, `s` never.
    func session(_ connection: Connection) -> Promise<Void> {
        connection.receive().then { bytes -> Promise<Void> in
            switch bytes.first {
            case UInt8(ascii: "i"): return connection.receive().asVoid()
            case UInt8(ascii: "b"): return after(.milliseconds(100)).then { connection.write("done") }
            default: return endless().asVoid()
            }
        }
    }

    /// Clients of which the server has read.
    func clients(_ net: Network, _ listener: Listener, _ kinds: String) throws -> [Peer] {
        let begun = net.calls(.receive)
        let clients = try kinds.map { kind in
            let client = try Peer(to: listener.localAddress)
            try client.send([kind.asciiValue!])
            return client
        }
        try net.loop.run(until: {
            listener.activeConnections == kinds.count && net.calls(.receive) - begun >= kinds.count
        })
        try net.loop.turn(.poll)
        return clients
    }

    /// The loop has ended the connection of the client, which ends its side in turn.
    func expectEnd(of client: Peer) throws {
        hang(after(.milliseconds(1)))
        #expect(try client.receive() == [])
        client.close()
    }

    func counts(_ result: DrainResult?) -> [Int]? { result.map { [$0.idle, $0.finished, $0.aborted] } }

    @Test(arguments: signals) func theFirstSignalDrains(signal: CInt) throws {
        let clock = VirtualClock()
        try withSignals(clock: clock) { net in
            let before = Self.signals.map(action)
            let listener = try net.listen()
            let served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .seconds(60), session)
            #expect(Self.signals.map(action) != before)
            let clients = try clients(net, listener, "iib")
            raise(signal)
            for client in clients[..<2] { try expectEnd(of: client) }
            clients[2].end()
            #expect(try counts(hang(served)) == [2, 1, 0])
            #expect(clock.now == LoopInstant(nanoseconds: 100_000_000))
            #expect(try clients[2].readToEnd() == Array("done".utf8))
            #expect(Self.signals.map(action) == before)
            #expect(net.loop.metrics.signalWatches == 0 && !net.loop.isAlive)
        }
    }

    @Test func theDeadlineAborts() throws {
        let clock = VirtualClock()
        try withSignals(clock: clock) { net in
            let listener = try net.listen()
            let served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .milliseconds(300), session)
            let clients = try clients(net, listener, "bs")
            let begin = clock.now
            raise(SIGCONT)
            hang(after(.milliseconds(299)))
            #expect(served.isPending)
            clients[0].close()
            #expect(try counts(hang(served)) == [0, 1, 1])
            #expect(begin.duration(to: clock.now) == .milliseconds(300))
            #expect(clients[1].failureOfReading() == ECONNRESET)
            #expect(!net.loop.isAlive)
        }
    }

    @Test(arguments: signals) func theSecondSignalAbortsAtOnce(second: CInt) throws {
        let clock = VirtualClock()
        try withSignals(clock: clock) { net in
            let port = try ReservedPort()
            let listener = try net.listen("\(port.address)")
            var arrived: [CInt] = []
            let served = listener.serve(
                untilStoppedBy: Self.signals, drainTimeout: .seconds(3600), onSignal: { arrived.append($0) }, session)
            let clients = try clients(net, listener, "ss")
            let begin = clock.now
            raise(SIGCONT)
            hang(after(.seconds(1)))
            #expect(arrived == [SIGCONT])
            port.expectRefusal()
            #expect(served.isPending && listener.activeConnections == 2)
            raise(second)
            #expect(try counts(hang(served)) == [0, 0, 2])
            #expect(arrived == [SIGCONT, second])
            #expect(begin.duration(to: clock.now) == .seconds(1))
            for client in clients { #expect(client.failureOfReading() == ECONNRESET) }
            #expect(!net.loop.isAlive)
        }
    }

    @Test func twoSignalsOfOneTurnAbort() throws {
        let clock = VirtualClock()
        try withSignals(clock: clock) { net in
            let listener = try net.listen()
            let served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .seconds(3600), session)
            let clients = try clients(net, listener, "s")
            let begin = clock.now
            raise(SIGPWR)
            raise(SIGCONT)
            #expect(try counts(hang(served)) == [0, 0, 1])
            #expect(clock.now == begin)
            #expect(clients[0].failureOfReading() == ECONNRESET)
        }
    }

    @Test func aSignalBeforeTheFirstConnectionEndsItAtOnce() throws {
        try withSignals { net in
            let listener = try net.listen()
            raiseSoon()
            let result = try listener.serveUntilStopped(by: Self.signals, drainTimeout: .seconds(3600), session)
            #expect(counts(result) == [0, 0, 0])
            #expect(code(listener.accept()) == EBADF)
            #expect(!net.loop.isAlive)
        }
    }

    func raiseSoon() { after(.milliseconds(1)).done { raise(SIGCONT) } }

    @Test func withoutASignalItEndsWithTheListener() throws {
        try withSignals { net in
            let listener = try net.listen()
            let served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .seconds(60), session)
            let clients = try clients(net, listener, "b")
            listener.close()
            try net.loop.turn(.poll)
            #expect(served.isPending)
            clients[0].close()
            #expect(try counts(hang(served)) == [0, 0, 0])
            #expect(!net.loop.isAlive)
        }
    }

    @Test func aDrainOfTheProgramsOwnCountsToo() throws {
        try withSignals { net in
            let listener = try net.listen()
            let served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .seconds(3600), session)
            let clients = try clients(net, listener, "sb")
            clients[1].close()
            listener.drain(deadline: .seconds(1))
            #expect(try counts(hang(served)) == [0, 1, 1])
            #expect(clients[0].failureOfReading() == ECONNRESET)
        }
    }

    @Test func cancelledItClosesTheListenerAndWatchesNoMore() throws {
        try withSignals { net in
            let before = Self.signals.map(action)
            let listener = try net.listen()
            let served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .seconds(60), session)
            let clients = try clients(net, listener, "b")
            served.cancel()
            #expect(Self.signals.map(action) == before)
            expect(served, failsWith: PromiseError.cancelled)
            #expect(code(listener.accept()) == EBADF)
            #expect(listener.activeConnections == 1)
            clients[0].end()
            try net.loop.run()
            #expect(try clients[0].readToEnd() == Array("done".utf8))
        }
    }

    @Test func cancelledWhileItDrainsTheDrainGoesOn() throws {
        let clock = VirtualClock()
        try withSignals(clock: clock) { net in
            let listener = try net.listen()
            let served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .seconds(2), session)
            let clients = try clients(net, listener, "s")
            let begin = clock.now
            raise(SIGCONT)
            hang(after(.seconds(1)))
            served.cancel()
            #expect(net.loop.metrics.signalWatches == 0)
            try net.loop.run()
            #expect(begin.duration(to: clock.now) == .seconds(2))
            #expect(clients[0].failureOfReading() == ECONNRESET)
        }
    }

    @Test func cancelledBySignalHandlerItDoesNotDrain() throws {
        try withSignals { net in
            let listener = try net.listen()
            var served: Promise<DrainResult>?
            served = listener.serve(
                untilStoppedBy: Self.signals, drainTimeout: .seconds(3600), onSignal: { _ in served?.cancel() }, session
            )
            let clients = try clients(net, listener, "b")
            raise(SIGCONT)
            try net.loop.turn(.wait)
            #expect(served?.isRejected == true)
            #expect(listener.activeConnections == 1)
            clients[0].end()
            try net.loop.run()
            #expect(try clients[0].readToEnd() == Array("done".utf8))
            served = nil
        }
    }

    @Test func theErrorThatEndsTheListenerRejects() throws {
        try withSignals { net in
            let listener = try net.listen()
            let served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .seconds(60), session)
            net.kernel.accept = { _, _ in -Int(EINVAL) }
            let client = try Peer(to: listener.localAddress)
            #expect(try rejection(of: served) == EINVAL)
            #expect(net.loop.metrics.signalWatches == 0)
            client.close()
        }
    }

    @Test func whatCannotBeginIsRefusedAndLeavesTheListenerAlone() throws {
        try withSignals { net in
            let listener = try net.listen()
            let sessions = { (signals: [CInt], limit: Int) in
                listener.serve(
                    untilStoppedBy: signals, drainTimeout: .seconds(60), maxConnections: limit, self.session)
            }
            #expect(code(sessions([], 1)) == EINVAL)
            #expect(code(sessions([SIGCONT, SIGKILL], 1)) == EINVAL)
            #expect(code(sessions([SIGCONT], 0)) == EINVAL)
            #expect(net.loop.metrics.signalWatches == 0)
            let served = listener.serve { self.session($0) }
            #expect(served.isPending)
            #expect(code(sessions([SIGCONT], 1)) == EBUSY)
            #expect(served.isPending)
            #expect(net.loop.metrics.signalWatches == 0)
            listener.close()
            try hang(served)
        }
    }

    @Test func theLoopsEndEndsIt() throws {
        var served: Promise<DrainResult>?
        _ = try logged {
            try withSignals { net in
                let listener = try net.listen()
                served = listener.serve(untilStoppedBy: Self.signals, drainTimeout: .seconds(60), session)
                try clients(net, listener, "b")[0].close()
            }
        }
        #expect(served?.isRejected == true)
    }
}
