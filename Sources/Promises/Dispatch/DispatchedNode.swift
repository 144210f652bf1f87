import Reactor
import Synchronization

/// The work of an operator with `on:`: an `Operation` that runs on another thread than the one that settles its source,
/// and settles a separate result.
@usableFromInline
protocol DispatchedOperation<Input, Output> {
    /// The value of the source.
    associatedtype Input
    /// The value of the result.
    associatedtype Output

    /// The outcomes for which the closure is called.
    var interest: DispatchedNode.Interest { get }

    /// Runs where the dispatcher runs it. If the outcome is not of interest, runs where the source is settled.
    func run(_ source: Source<Input>) -> DispatchedOutcome<Output>
}

/// The inline waiter for the source of an operator with `on:`. When it is notified of the outcome, it dispatches
/// itself.
///
/// Three parties may want its operation: the job, a cancellation, and the release of a job that never ran. The one that
/// puts `taken` into `upstream` gets the operation. It also owns `source`, and then `takenWord`. Unlike with other
/// nodes, a cancellation may come from any thread, so the node retains `source`, whatever happens to it elsewhere.
// @unchecked: as PromiseCore, and by the rules above.
@usableFromInline
final class DispatchedNode: PromiseCore, @unchecked Sendable {
    @usableFromInline let result: DispatchedResult
    private var source: PromiseCore?
    /// Set until the job has been dispatched: the dispatcher may retain the job, and the job must not retain the
    /// dispatcher. Owned by the thread that starts the node.
    private var dispatcher: (any Dispatcher)?
    private let interest: Interest
    /// The loop of the thread that attached the handler, if the loop is to count the job. If a job of a pool attached
    /// the handler, the loop for which that job runs.
    private let home: EventLoop.Remote?
    /// Whether `home` counts the job. The thread that resets this lowers the count.
    private let isCounted = Atomic(false)
    /// The word of `upstream` when the operation was taken out. Owned until the source is released.
    final var takenWord: UInt = 0

    /// The outcomes of the source for which the closure is called. All others are passed on where they occur.
    @usableFromInline
    enum Interest {
        case values
        case errors(CatchPolicy)
        case anything
    }

    @usableFromInline
    init(
        _ result: DispatchedResult, after source: PromiseCore, on dispatcher: (any Dispatcher)?, _ interest: Interest,
        role: Role, code: @escaping (PromiseCore, Phase) -> Void
    ) {
        self.result = result
        self.source = source
        self.dispatcher = dispatcher
        self.interest = interest
        home = dispatcher is ThreadPool ? EventLoop.ofCurrentThread.loopToNotify : nil
        result.home = home
        if home == nil && dispatcher != nil { result.sender = EventLoop.ofCurrentThread.remote }
        super.init(state: State.pending, loop: nil, role: role, code: code)
    }

    /// Waits for `inner`, which the handler of `node` has returned.
    init(following inner: PromiseCore, after node: DispatchedNode, code: @escaping (PromiseCore, Phase) -> Void) {
        result = node.result
        source = inner
        dispatcher = nil
        interest = .anything
        home = nil
        super.init(state: State.pending, loop: nil, code: code)
    }

    // MARK: Dispatch

    /// The source has settled, or the result has been cancelled and the operation cleans up.
    override func runAndRelease() {
        start()
        Unmanaged.passUnretained(self).release()
    }

    fileprivate func start() {
        guard let dispatcher = dispatcher.take(), isOfInterest else { return perform() }
        if let home {
            home.beginExternalWork()
            isCounted.store(true, ordering: .releasing)
        } else {
            result.didDispatch()
        }
        let ticket = DispatchToken(self)
        do { try dispatcher.dispatch { ticket.run() } } catch { dispatchDidFail(error) }
        // Otherwise the release of the token would count as a job that was released without running.
        withExtendedLifetime(ticket) {}
    }

    private var isOfInterest: Bool {
        let word = upstream.load(ordering: .acquiring)
        let mark = word & Upstream.mark
        switch interest {
        case .anything: return mark & Upstream.hasNoOutcome == 0 || mark == Upstream.cancelled
        case .values: return mark == Upstream.fulfilled
        case .errors(.allErrors): return mark == Upstream.rejected
        case .errors(let policy):
            // Taken out while it is read: a cancellation might release the error meanwhile.
            guard mark == Upstream.rejected, replace(word, by: Upstream.taken) else { return false }
            // Put back by an exchange: it publishes a reference, see
            // docs/explanation/life-of-a-promise.md.
            defer { _ = upstream.exchange(word, ordering: .acquiringAndReleasing) }
            return policy.catches(PromiseCore.core(word).error)
        }
    }

    /// Takes the operation out and runs it, unless another party has taken it.
    fileprivate func perform() {
        guard takeOut() else { return }
        let mark = takenWord & Upstream.mark
        if mark == Upstream.abandoned {
            code(self, .drop)
            if result.claim() { result.endAbandoned() }
        } else if mark != Upstream.cancelled && !result.isOpen && !role.contains(.runsWhenCancelled) {
            // The promise has been cancelled while the job was queued.
            code(self, .drop)
        } else if let home, isCounted.load(ordering: .relaxed) {
            let hasEnded = EventLoop.ofCurrentThread.work(for: home) { code(self, .run) }
            if !hasEnded { isCounted.store(false, ordering: .relaxed) }
        } else {
            code(self, .run)
        }
        releaseSource()
        releaseExternalWork()
    }

    private func dispatchDidFail(_ error: any Error) {
        guard takeOut() else { return }
        code(self, .drop)
        if claimResult() { result.endWithoutRunning(inputCore, error) }
        releaseSource()
    }

    /// The last reference to the job was released, whether it has run or not.
    fileprivate func tokenWasReleased() {
        if takeOut() {
            code(self, .drop)
            if claimResult() { result.endWithoutRunning(inputCore, nil) }
            releaseSource()
        }
        releaseExternalWork()
    }

    /// Lets the loop end: the result has settled, or waits for something else.
    func releaseExternalWork() {
        if isCounted.exchange(false, ordering: .acquiring) { home?.endExternalWork() }
    }

    private func takeOut() -> Bool {
        guard let word = replace(by: Upstream.taken) else { return false }
        takenWord = word
        source = nil
        return true
    }

    /// Releases the source. Only the party that has taken the operation out may call it.
    @usableFromInline
    func releaseSource() {
        guard takenWord & State.pointerMask != 0 else { return }
        let word = takenWord
        takenWord &= Upstream.mark
        PromiseCore.release(upstream: word)
    }

    private func replace(_ word: UInt, by other: UInt) -> Bool {
        upstream.compareExchange(expected: word, desired: other, ordering: .acquiringAndReleasing).exchanged
    }

    /// Replaces the word of `upstream`, and returns the previous one with its reference. Returns `nil`, without any
    /// effect, if the operation has been taken out.
    private func replace(by word: UInt) -> UInt? {
        var seen = upstream.load(ordering: .acquiring)
        while seen & Upstream.mark != Upstream.taken {
            let (done, now) = upstream.weakCompareExchange(
                expected: seen, desired: word, ordering: .acquiringAndReleasing)
            if done { return seen }
            seen = now
        }
        return nil
    }

    // MARK: Cancellation

    /// Ends the node of a result that has been claimed in order to cancel it. May be called on any thread.
    func stop(for error: (any Error)?) -> Stopping {
        let willRun = role.contains(.runsWhenCancelled)
        guard let before = willRun ? deliverCancellation(error) : replace(by: Upstream.taken) else {
            // The operation runs, or is about to. Its result comes too late.
            return .stopped(nil)
        }
        var next: PromiseCore?
        let wasWaiting = before & Upstream.mark == Upstream.waiting
        if wasWaiting, let source = source.take() {
            // A waiter that came by a link waits for a promise that another promise has adopted, and that is therefore
            // still needed.
            if !cameByLink { next = source }
            // The list belongs to the root. The root remains the root as long as it has waiters, and it belongs to the
            // source.
            withExtendedLifetime(source) { source.root.noteWithdrawal() }
        } else if before & State.pointerMask != 0 {
            PromiseCore.release(upstream: before)
        }
        guard willRun else {
            dropWhatWaits()
            // (A node without `home` may be stopped by a job that learns of the cancellation. That job has not claimed
            // the result, and must not write to it.)
            if home != nil { result.didStop(self) }
            return .stopped(next)
        }
        // The node's place in the list is still there, so the node cannot be in another list.
        if let next, next.isBehindCleanUps {
            _ = AfterCleanUps(next, on: nil) { self.start() }
        } else if wasWaiting {
            EventLoop.ofCurrentThread.runInline(.passRetained(CancelledStart(self)))
        }
        return .willEnd(next)
    }
}

extension DispatchedNode {
    /// Puts the cancellation where the operation looks for its input. If the source has settled, the operation still
    /// receives that outcome, and the result ends with the cancellation.
    ///
    /// Returns the previous word with its reference, unless the cancellation now owns that. Returns `nil`, without any
    /// effect, if the operation has been taken out.
    private func deliverCancellation(_ error: (any Error)?) -> UInt? {
        var seen = upstream.load(ordering: .acquiring)
        while seen & Upstream.mark != Upstream.taken {
            let mark = seen & Upstream.mark
            let hasSettled = mark == Upstream.fulfilled || mark == Upstream.rejected
            let late = hasSettled ? LateCancellation(error ?? PromiseCore.cancellationError, after: seen) : nil
            let word =
                late.map { UInt(bitPattern: Unmanaged.passRetained($0).toOpaque()) | Upstream.cancelled }
                ?? PromiseCore.cancellation(error, Upstream.cancelled)
            let (done, now) = upstream.compareExchange(
                expected: seen, desired: word, ordering: .acquiringAndReleasing)
            if done { return hasSettled ? mark : seen }
            late?.sourceWord = 0
            PromiseCore.release(upstream: word)
            seen = now
        }
        return nil
    }
}

/// The cancellation of a result whose node had already been notified of the outcome of its source.
// @unchecked Sendable: as PromiseCore. `sourceWord` is constant from the moment when another thread can access the
// object.
final class LateCancellation: PromiseCore, @unchecked Sendable {
    /// The previous word of the node: the source, and how it has settled. Owned, or 0.
    @exclusivity(unchecked) fileprivate(set) final var sourceWord: UInt

    init(_ error: any Error, after sourceWord: UInt) {
        self.sourceWord = sourceWord
        super.init(state: State.rejected | State.isHandled, loop: nil) { _, _ in }
        storeError(error, nil)
    }

    deinit {
        if sourceWord != 0 { PromiseCore.release(upstream: sourceWord) }
    }
}

/// The object that a dispatcher retains, so that the release of the job is noticed.
private final class DispatchToken: Sendable {
    private let node: DispatchedNode

    init(_ node: DispatchedNode) { self.node = node }

    func run() { node.perform() }

    deinit { node.tokenWasReleased() }
}

/// Starts an operation that must run even though its result has been cancelled.
private final class CancelledStart: Job {
    private let node: DispatchedNode

    init(_ node: DispatchedNode) {
        self.node = node
        super.init()
    }

    override func run() { node.start() }
}
