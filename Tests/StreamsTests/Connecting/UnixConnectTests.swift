import SimulatedNetwork

@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct UnixConnectTests {
    private func withFullListener(_ body: (VirtualNetwork, Listener) throws -> Void) throws {
        try withSimulatedNetwork { network in
            let listener = try Listener.bind("unix:/run/a", backlog: 0)
            let filler = try hang(connect(to: listener.localAddress))
            try body(network, listener)
            filler.abort()
            listener.close()
            expectEqual(network.test.openDescriptors, 0)
        }
    }

    private func calls(_ call: SystemCall) -> Int { EventLoop.current.metrics.systemCalls[call] ?? 0 }

    @Test func aFullBacklogIsTriedAgainUntilThereIsRoom() throws {
        try withFullListener { network, listener in
            let attempt = connect(to: listener.localAddress)
            network.run(for: .milliseconds(500))
            expect(attempt.isPending)
            expect(calls(.connect) < 20)
            let first = listener.accept()
            let client = try hang(attempt)
            try hang(first).abort()
            let server = try hang(listener.accept())
            try hang(client.write("x"))
            expectEqual(try hang(server.receive()), [0x78])
            client.abort()
            server.abort()
        }
    }

    @Test func withoutATimeOutItEndsAfterTwoMinutes() throws {
        try withFullListener { network, listener in
            #expect(throws: SystemError(.connect, EAGAIN)) { try hang(connect(to: listener.localAddress)) }
            expect(network.now >= LoopInstant(nanoseconds: 120_000_000_000))
        }
    }

    @Test(arguments: [false, true]) func cancelledOrTimedOutItIsTriedNoMore(isCancelled: Bool) throws {
        try withFullListener { network, listener in
            let attempt = connect(to: listener.localAddress, timeout: .milliseconds(100))
            network.run(for: .milliseconds(10))
            if isCancelled { attempt.cancel() }
            #expect(throws: isCancelled ? PromiseError.cancelled : .timedOut) { try hang(attempt) }
            expectEqual(network.now, LoopInstant(nanoseconds: isCancelled ? 10_000_000 : 100_000_000))
            let tries = calls(.connect)
            network.run(for: .seconds(1))
            expectEqual(calls(.connect), tries)
            expectEqual(EventLoop.current.nextDeadline, nil)
        }
    }

    @Test func theLoopEndsWhileItWaits() throws {
        var attempt: Promise<Connection>?
        try withSimulatedNetwork { network in
            let listener = try Listener.bind("unix:/run/a", backlog: 0)
            let filler = try hang(connect(to: listener.localAddress))
            attempt = connect(to: listener.localAddress, timeout: .seconds(3))
            network.run(for: .milliseconds(10))
            expectEqual(attempt?.isPending, true)
            filler.abort()
            withExtendedLifetime(listener) {}
        }
        expectEqual(attempt.flatMap { code($0) }, ECANCELED)
    }

    @Test(.network) func whatItMakesIsNotTakenForTCP() throws {
        let folder = Folder()
        let listeners = [try net.listen("unix:\(folder / "a")"), try net.listen()]
        for (listener, expected) in zip(listeners, [0, 1]) {
            let calls = net.calls(.setSocketOption)
            let client = try hang(connect(to: listener.localAddress), timeout: patience)
            expectEqual(net.calls(.setSocketOption) - calls, expected, "\(listener.localAddress)")
            expectEqual(client.peerAddress, listener.localAddress)
        }
    }

    @Test(.network) func withoutAListenerItFails() throws {
        let folder = Folder()
        folder.leaveStaleSocket("stale")
        expectEqual(code(connect(to: folder.address("stale"))), ECONNREFUSED)
        expectEqual(code(connect(to: folder.address("nothing"))), ENOENT)
        expectEqual(code(connect(to: "unix:@reactor-nobody-\(getpid())")), ECONNREFUSED)
    }
}
