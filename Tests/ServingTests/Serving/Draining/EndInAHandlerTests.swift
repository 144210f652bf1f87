@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A handler that ends its own listener, while the loop accepts the clients that wait.
struct EndInAHandlerTests {
    /// The event in which the clients are accepted.
    enum Cause: CaseIterable { case readiness, close, drain }
    /// How each handler ends the listener, or what happens in it.
    enum End: CaseIterable { case drain, closeWithBacklog, turn, close, cancel, failure, abort }
    /// The code of the program that is called before the next client is accepted.
    enum Form: CaseIterable { case serve, serveAsync, prepare, refuse }

    /// A client that waits is reset only if the program says so, by `close` or a cancellation, or if the socket fails.
    @Test(arguments: Cause.allCases, End.allCases) func whoWaitsIsServed(cause: Cause, end: End) throws {
        for form in Form.allCases {
            try withListener(clock: VirtualClock()) { net, listener in
                let name = "\(cause), \(end) in \(form)"
                var served: Promise<DrainResult>!
                func act() {
                    switch end {
                    case .drain: listener.drain(deadline: .seconds(2))
                    case .closeWithBacklog: listener.close(drain: true)
                    case .turn: try? net.loop.turn(.poll)
                    case .close: listener.close()
                    case .cancel: served.cancel()
                    case .failure: net.kernel.accept = { _, _ in -Int(EBADF) }
                    case .abort:
                        listener.drain(deadline: .seconds(2))
                        listener.abortDrain()
                    }
                }
                switch form {
                case .serve:
                    served = listener.serve { connection -> Promise<Void> in
                        act()
                        return echo(connection)
                    }
                case .serveAsync:
                    served = listener.serveAsync { connection in
                        act()
                        try await echo(connection).value
                    }
                case .prepare:
                    nonisolated(unsafe) let act = act
                    let prepare: @Sendable (Connection) -> Promise<Connection> = { connection in
                        act()
                        return .value(connection)
                    }
                    served = listener.serve(ServeOptions(prepare: prepare)) { echo($0) }
                case .refuse:
                    served = listener.serve(ServeOptions(maxConnections: 1, overflow: .refuse("busy"))) { connection in
                        act()
                        return echo(connection)
                    }
                }
                served.ignoringErrors()
                let clients = try (0..<5).map { _ in try Peer(to: listener.localAddress) }
                var drained: Guarantee<DrainResult>?
                switch cause {
                case .readiness: try net.loop.turn(.poll)
                case .close: listener.close(drain: true)
                case .drain: drained = listener.drain(deadline: .seconds(3600))
                }
                let accepted: Int
                switch end {
                case .drain, .closeWithBacklog, .turn: accepted = 5
                case .close, .cancel, .failure: accepted = 1
                // In the first handler its drain accepts the next client, whose handler ends that.
                case .abort: accepted = cause != .readiness ? 1 : form == .refuse ? 5 : 2
                }
                expectEqual(net.ledger.accepted.count, accepted, name)
                expectEqual(listener.isDraining, cause == .drain || end == .drain || end == .abort, name)
                for client in clients { client.close() }
                if cause == .readiness { listener.close() }
                try net.loop.run(until: { listener.activeConnections == 0 && listener.lingeringConnections == 0 })
                if let drained { hang(drained) }
                try hang(served.asVoid().recover(policy: .allErrors) { _ in .value }, timeout: .seconds(60))
                expectEqual(code(served), end == .failure ? EBADF : nil, name)
                expectEqual(served.error?.isCancelled == true, end == .cancel, name)
                net.kernel.accept = Syscalls().accept
                expectEqual(code(listener.accept()), EBADF, name)
                hang(after(.milliseconds(1)))
                expectEqual(net.loop.nextDeadline, nil, name)
            }
        }
    }

    /// The deadline may pass while a handler of the backlog turns the loop. The handler's promise is cancelled then,
    /// although it is made later.
    @Test(.listener(.virtual)) func theDeadlinePassesInAHandler() throws {
        var results: [DrainResult] = []
        let served = listener.serve { connection -> Promise<Void> in
            if net.ledger.accepted.count == 1 { hang(after(.seconds(2))) }
            return endless().asVoid()
        }
        let clients = try (0..<3).map { _ in try Peer(to: listener.localAddress) }
        listener.drain(deadline: .seconds(1)).done { results.append($0) }
        hang(after(.milliseconds(1)))
        expectEqual(results.map(\.aborted), [3])
        for client in clients { expectEqual(client.failureOfReading(), ECONNRESET) }
        try hang(served, timeout: .seconds(60))
        expectEqual(net.loop.nextDeadline, nil)
    }

    /// Handlers on other loops reach the listener by a job of its own loop.
    @Test(.group(2)) func onAGroup() throws {
        let home = EventLoop.current.remote
        nonisolated(unsafe) let own = listener
        let served = listener.serve(on: loops) { connection -> Promise<Void> in
            home.submit { own.drain(deadline: .seconds(30)) }
            return connection.write("served")
        }
        let clients = try (0..<5).map { _ in try Peer(to: listener.localAddress) }
        let drained = listener.drain(deadline: .seconds(30))
        for client in clients { expectEqual(try reply(of: client), "served") }
        expectEqual(hang(drained).aborted, 0)
        try hang(served, timeout: patience)
    }

    /// A promise of `accept` settles in its own job.
    @Test(.listener(.virtual)) func ofAccept() throws {
        var taken = 0
        for _ in 0..<5 {
            listener.accept().then { connection -> Promise<Void> in
                taken += 1
                listener.drain(deadline: .seconds(2))
                return echo(connection).ensure { connection.close() }
            }.ignoringErrors()
        }
        let clients = try (0..<5).map { _ in try Peer(to: listener.localAddress) }
        try net.loop.run(until: { listener.isDraining })
        for client in clients { client.close() }
        hang(after(.milliseconds(1)))
        expectEqual(taken, 5)
        expectEqual(net.loop.nextDeadline, nil)
    }
}
