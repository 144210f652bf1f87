@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// Virtual time, so that the pauses are exact and pass at once.
struct AcceptErrorTests {
    @Test(.listener(.virtual), arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func wantOfDescriptorsOrMemoryPauses(code trouble: CInt) throws {
        let served = listener.serve { echo($0) }
        let early = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        let late = try Peer(to: listener.localAddress)

        let real = net.kernel.accept
        var isExhausted = true
        net.kernel.accept = { isExhausted ? -Int(trouble) : real($0, $1) }
        let (calls, begin) = (net.calls(.accept), net.loop.now)
        var lateness: Duration = .seconds(1)
        after(.milliseconds(250)).done { lateness = begin.duration(to: net.loop.now) - .milliseconds(250) }
        let lines = logged { hang(after(.milliseconds(520))) }
        expectEqual(lines.count, 1, "once, although it has paused several times")
        expect(net.calls(.accept) - calls <= 7)
        expectEqual(lateness, .zero)
        expectEqual(listener.activeConnections, 1)

        try early.send("x")
        awaitArrival(of: POLLIN, at: net.ledger.accepted[0])
        try net.loop.run(until: { net.calls(.send) == 1 })
        expectEqual(try early.receive(), [0x78])

        isExhausted = false
        let resumed = net.loop.now
        try net.loop.run(until: { listener.activeConnections == 2 })
        expect(resumed.duration(to: net.loop.now) <= .milliseconds(100))
        listener.close()
        early.close()
        late.close()
        try hang(served)
    }

    @Test(.listener(.virtual)) func aLogHandlerThatClosesTheListenerLeavesNoPauseBehind() throws {
        net.kernel.accept = { _, _ in -Int(EMFILE) }
        let thread = pthread_self()
        // Closed on its own thread, which is the one that logs.
        nonisolated(unsafe) let closing = listener
        let recorder = LogRecorder(where: { event in
            guard case .acceptPaused = event else { return false }
            return pthread_equal(pthread_self(), thread) != 0
        }) { _ in closing.close() }
        defer { recorder.stop() }
        let accepted = listener.accept()
        _ = try Peer(to: listener.localAddress)
        expectEqual(try rejection(of: accepted), ECANCELED)
        expectEqual(recorder.count, 1)
        expectEqual(net.loop.nextDeadline, nil)
    }

    @Test(.network(.virtual)) func aWaitingAcceptOutlastsThePauseWithoutAReferenceToItsListener() throws {
        let real = net.kernel.accept
        // The kernel also returns this for a full table when no client waits.
        var failures = 3
        net.kernel.accept = {
            failures -= 1
            return failures >= 0 ? -Int(EMFILE) : real($0, $1)
        }
        let (accepted, address) = try {
            let listener = try net.listen()
            return (listener.accept(), listener.localAddress)
        }()
        _ = try Peer(to: address)
        try hang(accepted)
        expectEqual(net.loop.now, LoopInstant(nanoseconds: 300_000_000))
    }

    @Test(.listener) func aPauseNeedsNoDescriptor() throws {
        let accepted = listener.accept()
        try net.loop.turn(.poll)
        // No descriptor is left from here on, until the pause is over.
        let real = net.kernel
        net.kernel.timerCreate = { -Int(EMFILE) }
        net.kernel.accept = { _, _ in
            net.kernel.accept = real.accept
            return -Int(EMFILE)
        }
        _ = try Peer(to: listener.localAddress)
        try hang(accepted, timeout: patience)
    }

    /// A handler may turn the loop, which then finds the next client while the last one is still being delivered.
    @Test(.listener(.virtual)) func aPauseThatBeginsAnewIsOnePauseAndItIsTheLaterOne() throws {
        let real = net.kernel.accept
        var isExhausted = false
        net.kernel.accept = { isExhausted ? -Int(EMFILE) : real($0, $1) }
        let served = listener.serve { connection -> Promise<Void> in
            if listener.activeConnections == 1 {
                isExhausted = true
                try net.loop.turn(.poll)
                net.clock.advance(by: .milliseconds(50))
            }
            return echo(connection)
        }
        let clients = try (0..<2).map { _ in try Peer(to: listener.localAddress) }
        let lines = try logged { try net.loop.turn(.poll) }
        expectEqual(net.calls(.accept), 3)
        expectEqual(lines.count, 1)
        expectEqual(net.loop.keepAliveReport.timers, 1)
        // The first pause would have ended at 100.
        net.settle(.milliseconds(80))
        expectEqual(net.calls(.accept), 3)
        isExhausted = false
        try net.loop.run(until: { listener.activeConnections == 2 })
        expectEqual(net.clock.now, LoopInstant(nanoseconds: 150_000_000))
        try listener.end(served, closing: clients)
    }

    @Test(.network(.virtual)) func closingWithTheBacklogLeavesNoPauseBehind() throws {
        let listener = try Listener.bind(["127.0.0.1:0", "127.0.0.1:0"])
        net.kernel.accept = { _, _ in -Int(EMFILE) }
        let served = listener.serve { echo($0) }
        _ = try Peer(to: listener.localAddress)
        let lines = try logged {
            try net.loop.run(until: { net.calls(.accept) == 1 })
            listener.close(drain: true)
        }
        expectEqual(net.calls(.accept), 3, "each socket was asked once more")
        expectEqual(lines.count, 1)
        expectEqual(net.loop.nextDeadline, nil)
        try hang(served)
        expectEqual(net.loop.now, LoopInstant(nanoseconds: 0))
    }

    /// Those that accept(2) passes on from the new socket, and those that may occur besides.
    @Test(
        .listener,
        arguments: [
            ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH,
            ECONNABORTED, EINTR, EPERM, ENOSR, ESOCKTNOSUPPORT, EPROTONOSUPPORT, ETIMEDOUT, ECONNRESET, EPIPE,
        ])
    func troubleOfOneConnectionIsSkippedInTheSamePass(code trouble: CInt) throws {
        let real = net.kernel.accept
        var failures = 3
        net.kernel.accept = {
            failures -= 1
            return failures >= 0 ? -Int(trouble) : real($0, $1)
        }
        _ = try Peer(to: listener.localAddress)
        let accepted = listener.accept()
        try net.loop.turn(.upTo(.seconds(10)))
        expect(accepted.isFulfilled)
        expectEqual(net.calls(.accept), 4)
    }

    /// A security module or seccomp refuses each connection before it is taken from the backlog.
    @Test(.listener(.virtual), arguments: [EPERM, EACCES, ENOSYS, EOPNOTSUPP, EIO])
    func aRefusalOfEveryConnectionPauses(code trouble: CInt) throws {
        let socket = try #require(net.ledger.open.max())
        let served = listener.serve { echo($0) }
        let real = net.kernel.accept
        // A listener that spins fails the test instead of blocking it.
        net.kernel.accept = { net.calls(.accept) > 10_000 ? real($0, $1) : -Int(trouble) }
        let client = try Peer(to: listener.localAddress)
        awaitArrival(of: POLLIN, at: socket)
        let lines = logged { net.settle(.milliseconds(520)) }
        expect(net.calls(.accept) >= 6 && net.calls(.accept) <= 64 + 6)
        expectEqual(lines.count, 1)
        expectEqual(lines.first?.contains("cannot accept connections for now"), true)
        expect(served.isPending)

        net.kernel.accept = real
        try net.loop.run(until: { listener.activeConnections == 1 })
        try listener.end(served, closing: [client])
    }

    @Test(.network, arguments: [EBADF, EINVAL, ENOTSOCK])
    func theListenersOwnTroubleEndsItWithAllItsSockets(code trouble: CInt) throws {
        let port = try ReservedPort()
        let listener = try Listener.bind(["\(port.address)", "127.0.0.1:0"])
        let served = listener.serve { echo($0) }
        var settled = 0
        served.tap { _ in settled += 1 }.catch { _ in }
        let early = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })

        let real = net.kernel.accept
        net.kernel.accept = { _, _ in -Int(trouble) }
        let late = try Peer(to: listener.localAddresses[1])
        expectEqual(try rejection(of: served), trouble)
        expect("\(served.error!)".contains("\(listener.localAddresses[1])"))
        net.kernel.accept = real
        expectEqual(late.failureOfReading(), ECONNRESET)
        port.expectRefusal()
        expectEqual(code(listener.accept()), EBADF)

        try early.send("x")
        expectEqual(try hang(elsewhere { try early.receive() }, timeout: patience), [0x78])
        early.end()
        try net.loop.run(until: { listener.activeConnections == 0 })
        expectEqual(settled, 1)
    }

    @Test(.listener) func allWaitingAcceptsLearnWhatEndedTheListener() throws {
        let waiting = [listener.accept(), listener.accept()]
        net.kernel.accept = { _, _ in -Int(EINVAL) }
        _ = try Peer(to: listener.localAddress)
        for accept in waiting { expectEqual(try rejection(of: accept), EINVAL) }
    }
}
