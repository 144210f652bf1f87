import Reactor

/// Is fulfilled when this process receives `signal`, on this thread's loop; see `EventLoop.onSignal`, and there for what
/// becomes of the process's own action.
///
/// ```swift
/// try nextSignal(SIGTERM).then { server.shutDown() }.done { EventLoop.current.stop() }
/// ```
///
/// It hears of one signal: then the process's own action is back, so that a second SIGTERM ends the process, unless it
/// is called again or an `onSignal` stands.
///
/// It keeps the loop alive until the signal has come, or until it is cancelled: then the watch ends.
/// - Throws: `SystemError` of `sigaction`, as `onSignal`.
@available(*, noasync, message: "an async function has no loop of its own")
public func nextSignal(
    _ signal: CInt, file: StaticString = #fileID, line: UInt = #line
) throws(SystemError) -> Guarantee<Void> {
    let wait = try SignalWait(signal, file, line)
    return Guarantee(wait.start().traced(root: "nextSignal", Guarantee<Void>.self, file, line))
}

/// The watch of one signal, held by its handler.
private final class SignalWait: IOProducer {
    private var watch: EventLoop.SignalWatch?
    private var promise: PromiseCore?

    init(_ signal: CInt, _ file: StaticString, _ line: UInt) throws(SystemError) {
        // The cycle ends with the watch: when the signal comes, by a cancellation, or with the loop.
        watch = try EventLoop.ofCurrentThread.onSignal(
            signal, { [last = SignalWaitEnd(self)] in last.wait.signalDidArrive() }, file: file, line: line)
    }

    func start() -> PromiseCore {
        let core = IOPromise(Void.self, self)
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

    /// Nobody will tell of the signal any more.
    func handlerIsGone() { promise.take()?.producerDidEnd() }

    private func endWatch() { watch.take()?.cancel() }
}

/// Held by the handler alone: its end is that of the watch.
private final class SignalWaitEnd {
    let wait: SignalWait

    init(_ wait: SignalWait) { self.wait = wait }

    deinit { wait.handlerIsGone() }
}
