import Promises
import Reactor
import ReactorIO
import ServiceLifecycle

/// A server as a `Service`: starts on a loop, and drains its connections at a graceful shutdown.
///
/// ```swift
/// let server = ServerService(name: "http", drainTimeout: .seconds(10)) {
///     let listener = try Listener.bind("0.0.0.0:8080")
///     return (listener, listener.serve { connection in … })
/// }
/// try await ServiceGroup(services: [server], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger).run()
/// ```
///
/// `run()` returns after the last connection has ended. A graceful shutdown closes the listener and the idle
/// connections, and gives busy ones `drainTimeout` to end; then they are aborted. Cancelling the task of `run()` aborts
/// them at once.
public struct ServerService: Service, CustomStringConvertible {
    private let name: String
    private let loop: LoopRemote?
    private let drainTimeout: Duration
    private let start: @Sendable () throws -> (Listener, Promise<DrainResult>)

    /// - Parameters:
    ///   - name: the name of the loop's thread, and of the service in the group's log.
    ///   - loop: the loop that listens, for example one of a `LoopGroup` that other services also use. Without it
    ///     `run()` starts one, which ends with the service.
    ///   - drainTimeout: how long the drain may take; see `Listener.drain`.
    ///   - start: called on the loop's thread: binds the listener and returns it with the promise of its `serve`.
    public init(
        name: String = "server", on loop: LoopRemote? = nil, drainTimeout: Duration = .seconds(10),
        _ start: @escaping @Sendable () throws -> (Listener, Promise<DrainResult>)
    ) {
        self.name = name
        self.loop = loop
        self.drainTimeout = drainTimeout
        self.start = start
    }

    /// Serves until the group is shut down.
    /// - Throws: an error that `start` throws, the error that ends the listener, `DispatchError.loopEnded` if the loop
    ///   has ended, and the `SystemError` of `EventLoop.spawn`.
    public func run() async throws {
        let remote = try loop ?? EventLoop.spawn(name: name)
        defer { if loop == nil { remote.stop() } }
        let server = RunningServer(remote)
        try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                try await server.serve(start)
            } onGracefulShutdown: {
                server.end(within: drainTimeout)
            }
        } onCancel: {
            server.end(within: .zero)
        }
    }

    /// The name.
    public var description: String { name }
}

/// A server on its loop.
// @unchecked: the listener and the deadline are used in jobs of the loop only.
private final class RunningServer: @unchecked Sendable {
    private let loop: LoopRemote
    private var listener: Listener?
    /// The shortest drain requested so far.
    private var deadline: Duration?

    init(_ loop: LoopRemote) { self.loop = loop }

    func serve(_ start: @escaping @Sendable () throws -> (Listener, Promise<DrainResult>)) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            // Resumes once, also if the loop releases the job without running it.
            let waiter = Waiter(continuation)
            loop.submit {
                do {
                    let (listener, served) = try start()
                    self.listener = listener
                    served.pipe { result in waiter.resume(result.map { _ in }) }
                    if let deadline = self.deadline { self.end(listener, deadline) }
                } catch {
                    waiter.resume(.failure(error))
                }
            }
        }
    }

    /// Any thread.
    func end(within timeout: Duration) {
        loop.submit {
            self.deadline = min(self.deadline ?? timeout, timeout)
            if let listener = self.listener { self.end(listener, timeout) }
        }
    }

    private func end(_ listener: Listener, _ timeout: Duration) {
        listener.drain(deadline: timeout)
        // A drain keeps its first deadline.
        if timeout == .zero { listener.abortDrain() }
    }

    /// A continuation that is resumed by a result, or by being released.
    private final class Waiter: @unchecked Sendable {
        // @unchecked: used only by the one job that resumes it, or by `deinit`.
        private var continuation: CheckedContinuation<Void, any Error>?

        init(_ continuation: CheckedContinuation<Void, any Error>) { self.continuation = continuation }

        deinit { continuation?.resume(throwing: DispatchError.loopEnded) }

        func resume(_ result: Result<Void, any Error>) { continuation.take()?.resume(with: result) }
    }
}
