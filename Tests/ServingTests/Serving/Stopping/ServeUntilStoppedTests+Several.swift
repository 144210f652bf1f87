@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

extension ServeUntilStoppedTests {
    @Test func severalListenersAreDrainedTogether() throws {
        try withSignals(clock: VirtualClock()) { net in
            let listeners = [try net.listen(), try net.listen(), try net.listen()]
            let served = listeners[..<2].map { listener in listener.serve(handler: serveByFirstByte) }
            let accepted = listeners[2].accept()
            let drained = Listener.drain(listeners, atFirstOf: Self.signals, deadline: .seconds(2))
            let clients = try net.connectClients("ib", to: listeners[0]) + net.connectClients("sb", to: listeners[1])
            let begin = net.loop.now
            raise(SIGPWR)
            try expectEnd(of: clients[0], net)
            for client in clients { client.end() }
            expectEqual(try counts(hang(drained)), [1, 2, 1])
            expectEqual(begin.duration(to: net.loop.now), .seconds(2))
            for served in served { expect(served.isFulfilled) }
            expectEqual(code(accepted), ECANCELED)
            expect(!net.loop.isAlive)
        }
    }

    /// The first failure rejects the promise, and the others continue; later ones are for the caller to handle, as
    /// without a drain.
    @Test func oneListenerThatFailsRejects() throws {
        try withSignals { net in
            let listeners = [try net.listen(), try net.listen()]
            let lines = try logged {
                for listener in listeners { _ = listener.serve(handler: serveByFirstByte) }
                let drained = Listener.drain(listeners, atFirstOf: Self.signals, deadline: .seconds(10))
                net.kernel.accept = { _, _ in -Int(EINVAL) }
                let first = try Peer(to: listeners[0].localAddress)
                expectEqual(try rejection(of: drained), EINVAL)
                expectEqual(net.loop.metrics.signalWatches, 0)
                expectEqual(code(listeners[1].accept()), EBUSY, "it still serves")
                let second = try Peer(to: listeners[1].localAddress)
                try net.loop.run()
                first.close()
                second.close()
            }
            expect(lines.count == 1 && lines[0].contains("unhandled rejection"))
        }
    }

    @Test func cancelledTheDrainOfSeveralLeavesThemServing() throws {
        try withSignals { net in
            let listener = try net.listen()
            let served = listener.serve(handler: serveByFirstByte)
            let drained = Listener.drain([listener], atFirstOf: Self.signals, deadline: .seconds(10))
            drained.cancel()
            expectEqual(net.loop.metrics.signalWatches, 0)
            expect(served.isPending)
            try listener.end(served)
            let none = Listener.drain([listener], atFirstOf: Self.signals, deadline: .seconds(10))
            expectEqual(counts(none.settledValue), [0, 0, 0])
        }
    }

    @Test func onAGroupTheSecondSignalAbortsOnAllLoops() throws {
        let group = try LoopGroup(loops: 2)
        try takingSignals {
            try EventLoop.withLoop { loop throws in
                let listener = try Listener.bind("127.0.0.1:0")
                var arrived = 0
                let options = ServeOptions(
                    stopSignals: Self.signals, drainTimeout: .seconds(3600), onSignal: { _ in arrived += 1 })
                let served = listener.serve(on: group, options) { connection in
                    connection.receive().then { connection.write($0) }.then { endless() }.asVoid()
                }
                let clients = try (0..<4).map { _ in try welcome(to: listener) }
                raise(SIGCONT)
                try loop.run(until: { arrived == 1 })
                expect(served.isPending)
                // Signals in quick succession are one.
                hang(after(.milliseconds(100)))
                raise(SIGCONT)
                expectEqual(try counts(hang(served, timeout: patience)), [0, 0, 4])
                for client in clients { expectEqual(client.failureOfReading(), ECONNRESET) }
            }
        }
        group.stop()
        group.join()
    }
}
