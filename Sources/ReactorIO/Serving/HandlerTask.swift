import Promises
import Reactor

/// The task of an async handler, and a promise that the task settles when it ends.
///
/// Cancelling the promise cancels the task. Unlike other promises, it then stays pending until the task ends, so that
/// the connection counts as active until then. Only the loop's end rejects it earlier, because the handler might wait
/// for something that can no longer happen, such as a timer of the loop.
// @unchecked: the properties are accessed on the loop's thread or, once the loop has ended, by the task.
final class HandlerTask: @unchecked Sendable {
    let core: ExternalCore
    private let madeAt: CallSite
    private let home: EventLoop
    // A retain cycle until the task ends and releases its captures.
    private var task: Task<Void, Never>?
    private var isCancelled = false
    /// True when an orderly close has begun, whose end does not concern the handler.
    private var isClosing = false
    private var clientFailure: (any Error)?
    /// Keeps the loop alive until the task has ended.
    private var hold: EventLoop.Hold?
    private var ending: Int?

    init(_ callSite: CallSite, on loop: EventLoop) {
        madeAt = callSite
        home = loop
        core = ExternalCore(Void.self, madeAt: callSite, isLeftToItsWork: true)
        // Called only on the loop's thread, where the `ConnectionTracker` and the `ServedConnection` keep the promise.
        // Unowned: the task retains this object until it has settled the promise.
        core.onCancel = { [unowned self] _, _ in cancelTask() }
    }

    /// Calls `options.prepare` and `handler` in a task on the loop. The task runs at once, up to its first suspension.
    func start(
        _ connection: Connection, _ executor: ThreadBoundExecutor, _ options: ServeOptions,
        _ handler: @escaping @isolated(any) (Connection) async throws -> Void
    ) {
        hold = home.hold(at: madeAt)
        ending = home.whenEnding { [self] in
            connection.loopWillEnd()
            cancelTask()
            if core.claim() { core.reject(PromiseError.loopEnded) }
        }
        ServedConnection.of(connection).begin(cancelling: self, whenPeerGone: options.cancelsWhenPeerGone)
        let resolver = Resolver<Void>(core)
        // Sound because the task's executor is bound to this thread: no other thread uses `handler`, its captures or
        // the connection. A handler isolated to an actor also runs on this thread, as `serveAsync` has checked.
        let (taken, prepare, handler) = (OnThread(connection), options.prepare, OnThread(handler))
        // Detached, because this may be called inside another task.
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
        // If the promise has settled, the task has ended, or its actions on the connection will cancel it.
        if core.isOpen { self.task = task }
        if isCancelled { task.cancel() }
        if self.task != nil { connection.updateInterest() }
    }

    /// Cancels the task for a failure that no pending read or write reports to the handler.
    func clientDidFail(_ error: any Error) {
        clientFailure = error
        cancelTask()
    }

    /// Called at an orderly close. The handler, which may have called `close`, continues.
    func connectionWillClose() { isClosing = true }

    func connectionDidEnd(_ end: ConnectionEnd) {
        switch end {
        case .closed, .detached: break
        case .aborted, .failed, .loopEnded: if !isClosing { cancelTask() }
        }
    }

    func connectionWasAborted() { cancelTask() }

    private func cancelTask() {
        isCancelled = true
        task?.cancel()
    }

    private func finish() {
        hold?.cancel()
        hold = nil
        // Once the loop has ended, this runs on another thread.
        if let ending, !home.hasEnded { home.forgetEnding(ending) }
        ending = nil
        task = nil
    }
}
