import Promises
import Reactor

/// Makes a guarantee that is fulfilled on this thread's loop when this process receives `signal`.
///
/// ```swift
/// try nextSignal(SIGTERM).then { server.shutDown() }.done { EventLoop.current.stop() }
/// ```
///
/// Handles a single delivery and then restores the process's previous action. So a second SIGTERM ends the process,
/// unless `nextSignal` is called again or an `onSignal` is active; see `EventLoop.onSignal`. The loop stays alive until
/// the delivery, or until the guarantee is cancelled.
/// - Throws: `SystemError` from `sigaction`, as for `onSignal`.
@available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
public func nextSignal(
    _ signal: CInt, file: StaticString = #fileID, line: UInt = #line
) throws(SystemError) -> Guarantee<Void> {
    let wait = try SignalWait(signal, file, line)
    return Guarantee(wait.start().traced(root: "nextSignal", Guarantee<Void>.self, file, line))
}

private final class SignalWait: CancellableWork {
    private var watch: EventLoop.Watch?
    private var promise: PromiseCore?

    init(_ signal: CInt, _ file: StaticString, _ line: UInt) throws(SystemError) {
        // The watch's end breaks the retain cycle: at the signal, a cancellation, or the loop's end.
        let end = OnDeinit { [self] in promise.take()?.producerDidEnd() }
        watch = try EventLoop.ofCurrentThread.onSignal(
            signal, { [self] in withExtendedLifetime(end) { signalDidArrive() } }, file: file, line: line)
    }

    func start() -> PromiseCore {
        let core = PromiseCore.pending(Void.self, by: self)
        promise = core
        return core
    }

    func signalDidArrive() {
        let core = promise.take()
        endWatch()
        core?.fulfill(())
    }

    func stop(_ promise: PromiseCore) -> Bool {
        guard self.promise.take() != nil else { return false }
        endWatch()
        return true
    }

    private func endWatch() { watch.take()?.cancel() }
}
