import Promises
import Reactor

/// The task of an async handler, as a promise that the task settles when it ends.
///
/// Cancelling this promise cancels the task. Unlike other promises, it stays pending until the task ends: the
/// connection counts as active until its handler has finished, including its clean-up. Only the end of the loop rejects
/// it earlier: the handler might then wait for something that never happens, such as a timer of the loop.
// @unchecked: the properties are accessed on the loop's thread, or, once the loop has ended, by the task.
final class HandlerTask: @unchecked Sendable {
    let core: ExternalCore
    private let madeAt: CallSite
    private let home: EventLoop
    // A retain cycle until the task ends and releases what it captured.
    private var task: Task<Void, Never>?
    private var isCancelled = false
    /// Whether an orderly close of the connection has begun. Its end does not concern the handler.
    private var isClosing = false
    /// The failure or end of the connection that has cancelled the task.
    private var clientFailure: (any Error)?
    /// Keeps the loop alive until the task has ended.
    private var hold: EventLoop.Hold?
    private var ending: Int?

    init(_ callSite: CallSite, on loop: EventLoop) {
        madeAt = callSite
        home = loop
        core = ExternalCore(Void.self, madeAt: callSite, isLeftToItsWork: true)
        // Called only on the loop's thread: nobody but the loop's `ConnectionTracker` and the `ServedConnection` gets the
        // promise. Until the task has settled it, the task retains this object.
        core.onCancel = { [unowned self] _, _ in cancelTask() }
    }

    /// Calls `options.prepare`, if any, and `handler` in a task that runs on the loop: at once, up to the first suspension.
    func start(
        _ connection: Connection, _ executor: ThreadBoundExecutor, _ options: ServeOptions,
        _ handler: @escaping @isolated(any) (Connection) async throws -> Void
    ) {
        hold = home.hold(at: madeAt)
        ending = home.whenEnding { [self] in
            connection.loopWillEnd()
            // The connection may have ended already.
            cancelTask()
            if core.claim() { core.reject(PromiseError.loopEnded) }
        }
        ServedConnection.of(connection).begin(cancelling: self, whenPeerGone: options.cancelsWhenPeerGone)
        let resolver = Resolver<Void>(core)
        // Sound because the task's executor is bound to this thread: `handler`, its captures and the connection are
        // used on no other thread. A handler that is isolated to an actor runs on this thread too, which `serveAsync`
        // has checked.
        let (taken, prepare, handler) = (OnThread(connection), options.prepare, OnThread(handler))
        // Detached: this may be called inside another task.
        let task = Task.immediateDetached(executorPreference: executor) { [self] in
            do {
                nonisolated(unsafe) let prepared = try await prepare?(taken.value).value ?? taken.value
                try await handler.value(prepared)
                finish()
                resolver.fulfill()
            } catch {
                finish()
                resolver.reject(error.isCancelled ? clientFailure ?? error : error)
            }
        }
        // Otherwise the task has ended, or what it did to its connection will cancel it.
        if core.isOpen { self.task = task }
        if isCancelled { task.cancel() }
        if self.task != nil { connection.updateInterest() }
    }

    /// The connection has failed, or its peer has gone, while no pending read or write would have reported it to the
    /// handler.
    func clientDidFail(_ error: any Error) {
        clientFailure = error
        cancelTask()
    }

    /// `close` has been called, possibly by the handler, which continues.
    func connectionWillClose() { isClosing = true }

    /// The connection has been released.
    func connectionDidEnd(_ end: ConnectionEnd) {
        switch end {
        case .closed, .detached: break
        case .aborted, .failed, .loopEnded: if !isClosing { cancelTask() }
        }
    }

    /// `abort` has been called, perhaps during a close.
    func connectionWasAborted() { cancelTask() }

    private func cancelTask() {
        isCancelled = true
        task?.cancel()
    }

    private func finish() {
        hold?.cancel()
        hold = nil
        // After the end of the loop this is another thread.
        if let ending, !home.hasEnded { home.forgetEnding(ending) }
        ending = nil
        task = nil
    }
}
