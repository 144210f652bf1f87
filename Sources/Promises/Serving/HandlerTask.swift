import Reactor

/// The task of an async handler, as the promise that the task settles when it ends.
///
/// A cancellation of this promise cancels the task. The promise stays pending until the task ends, unlike other
/// promises: the connection counts as active until its handler has finished, also a handler that cleans up. Only the end
/// of the loop rejects the promise before: what the handler then waits for may never happen, such as a timer of the loop.
// @unchecked: as PromiseCore. The other properties are accessed on the loop's thread, or, once the loop has ended, by the
// task.
final class HandlerTask: PromiseCore, @unchecked Sendable {
    private let madeAt: CallSite
    private let home: EventLoop
    // A retain cycle until the task ends and releases what it captured.
    private var task: Task<Void, Never>?
    private var isCancelled = false
    /// Whether an orderly close of the connection has begun. How that ends does not concern the handler.
    private var isClosing = false
    /// The failure or the end of the connection that has cancelled the task.
    private var clientFailure: (any Error)?
    /// Until the task has ended, the loop stays alive.
    private var hold: EventLoop.Hold?
    private var ending: Int?

    init(_ callSite: CallSite, on loop: EventLoop) {
        madeAt = callSite
        home = loop
        super.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: .of(Follow<Void>.self))
    }

    override var callSite: CallSite? { madeAt }

    /// Calls `prepare`, if there is one, and `handler` in a task that runs on the loop: at once, up to the first suspension.
    func start(
        _ connection: Connection, _ executor: ThreadBoundExecutor, cancelsWhenPeerGone: Bool,
        _ prepare: ((Connection) -> Promise<Connection>)?,
        _ handler: @escaping @isolated(any) (Connection) async throws -> Void
    ) {
        hold = home.hold(at: madeAt)
        ending = home.whenEnding { [self] in
            connection.loopWillEnd()
            // The connection may have ended before.
            _ = cancelProducer()
            if claim() { reject(PromiseError.loopEnded) }
        }
        ServedConnection.of(connection).begin(self, cancelsWhenPeerGone: cancelsWhenPeerGone)
        let resolver = Resolver<Void>(self)
        // Sound because the task's executor is bound to this thread: `handler`, what it has captured and the connection
        // are used on no other thread. A handler that is isolated to an actor runs on this thread too, which `serveAsync`
        // has checked.
        nonisolated(unsafe) let (connection, prepare, handler) = (connection, prepare, handler)
        // Detached: this may be called inside another task.
        let task = Task.immediateDetached(executorPreference: executor) { [self] in
            do {
                nonisolated(unsafe) let prepared = try await prepare?(connection).value ?? connection
                try await handler(prepared)
                finish()
                resolver.fulfill()
            } catch {
                finish()
                resolver.reject(error.isCancelled ? clientFailure ?? error : error)
            }
        }
        // Otherwise the task has ended, or will be cancelled by what it has itself done to its connection.
        if state.loadRelaxed().isPending { self.task = task }
        if isCancelled { task.cancel() }
        if self.task != nil { connection.updateInterest() }
    }

    /// The connection has failed, or its peer has gone, while no read and no write waited, which would have told the handler.
    func clientDidFail(_ error: any Error) {
        clientFailure = error
        _ = cancelProducer()
    }

    /// `close` has been called: the handler may have done that, and continues.
    func connectionWillClose() { isClosing = true }

    /// The connection has been released.
    func connectionDidEnd(_ end: ConnectionEnd) {
        switch end {
        case .closed, .detached: break
        case .aborted, .failed, .loopEnded: if !isClosing { _ = cancelProducer() }
        }
    }

    /// `abort` has been called, perhaps during a close.
    func connectionWasAborted() { _ = cancelProducer() }

    /// The promise is left to the task, which settles it.
    override func cancelProducer() -> Bool {
        isCancelled = true
        task?.cancel()
        return false
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
