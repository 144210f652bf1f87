import Reactor
import Synchronization

/// What an operator with `on:` does: an `Operation` that runs on another thread than its source is settled on, and settles a
/// result of its own.
@usableFromInline
protocol DispatchedOperation<Input, Output> {
    /// The value of the source.
    associatedtype Input
    /// The value of the result.
    associatedtype Output

    /// What the closure is called for.
    var interest: DispatchedNode.Interest { get }

    /// Runs where the dispatcher likes; or where the source is settled, if that is not of interest.
    func run(_ source: Source<Input>) -> DispatchedOutcome<Output>
}

/// What waits for the source of an operator with `on:`, inline. Told of the outcome, it hands itself to the dispatcher.
///
/// Three may want its operation: the job, a cancellation, and the end of a job that never ran. It is by `upstream` that one
/// of them gets it, by putting `taken` there. That is also who owns `source`, and `told` after it. A cancellation may be
/// on any thread, unlike that of other nodes, and so `source` is held, whatever becomes of it elsewhere.
// @unchecked: as PromiseCore, and by what is said above.
@usableFromInline
final class DispatchedNode: PromiseCore, @unchecked Sendable {
    @usableFromInline let result: DispatchedResult
    private var source: PromiseCore?
    /// Until the job has been given to it: it may hold that, and must not be held by it. Of who starts the node.
    private var dispatcher: (any Dispatcher)?
    private let interest: Interest
    /// The loop whose thread attached the handler, if it is to count the job; or that for which a job attached it.
    private let home: EventLoop.Remote?
    /// Whether it does. Who takes that back lowers the count.
    private let isCounted = Atomic(false)
    /// The word that `upstream` had when the operation was taken out. Owned, until the source is let go.
    final var told: UInt = 0

    /// The outcomes of the source that the closure is called for. Others are passed on where they come up.
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

    // MARK: The way to the job

    /// The source has settled; or, of an operation that cleans up, the result has been cancelled.
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
        // Or its end would be a job that was let go.
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
            // Taken out while it is looked at, or a cancellation might let go of the error.
            guard mark == Upstream.rejected, replace(word, by: Upstream.taken) else { return false }
            // Back by an exchange: it publishes a reference, see "The life of a promise" in docs/architecture.md.
            defer { _ = upstream.exchange(word, ordering: .acquiringAndReleasing) }
            return policy.catches(PromiseCore.core(word).error)
        }
    }

    /// Takes the operation out and carries it through, if that is still to be done.
    fileprivate func perform() {
        guard takeOut() else { return }
        let mark = told & Upstream.mark
        if mark == Upstream.abandoned {
            code(self, .drop)
            if result.claim() { result.endForsaken() }
        } else if mark != Upstream.cancelled && !result.isOpen && !role.contains(.runsWhenCancelled) {
            // The promise has been cancelled while the job was on its way.
            code(self, .drop)
        } else if let home, isCounted.load(ordering: .relaxed) {
            let hasEnded = EventLoop.ofCurrentThread.work(for: home) { code(self, .run) }
            if !hasEnded { isCounted.store(false, ordering: .relaxed) }
        } else {
            code(self, .run)
        }
        letGoOfSource()
        releaseExternalWork()
    }

    private func dispatchDidFail(_ error: any Error) {
        guard takeOut() else { return }
        code(self, .drop)
        if mayBring { result.endUnrun(toldSource, error) }
        letGoOfSource()
    }

    /// Nobody has the job any more, run or not.
    fileprivate func tokenWasReleased() {
        if takeOut() {
            code(self, .drop)
            if mayBring { result.endUnrun(toldSource, nil) }
            letGoOfSource()
        }
        releaseExternalWork()
    }

    /// The loop need not wait for it: the result has settled, or waits for something else.
    func releaseExternalWork() {
        if isCounted.exchange(false, ordering: .acquiring) { home?.endExternalWork() }
    }

    private func takeOut() -> Bool {
        guard let word = replace(by: Upstream.taken) else { return false }
        told = word
        source = nil
        return true
    }

    /// Only for who has taken the operation out.
    @usableFromInline
    func letGoOfSource() {
        guard told & State.pointerMask != 0 else { return }
        let word = told
        told &= Upstream.mark
        PromiseCore.release(upstream: word)
    }

    private func replace(_ word: UInt, by other: UInt) -> Bool {
        upstream.compareExchange(expected: word, desired: other, ordering: .acquiringAndReleasing).exchanged
    }

    /// Answers what was there before, with its reference; `nil`, and nothing is done, if the operation has been taken out.
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

    /// The result has been claimed, to be cancelled; on any thread.
    func stop(for error: (any Error)?) -> Stopping {
        let willRun = role.contains(.runsWhenCancelled)
        guard let before = willRun ? tellOfCancellation(error) : replace(by: Upstream.taken) else {
            // It runs, or is about to. What it brings comes too late.
            return .stopped(nil)
        }
        var next: PromiseCore?
        let wasWaiting = before & Upstream.mark == Upstream.waiting
        if wasWaiting, let source = source.take() {
            // Who came by a link waits for a promise that another one has adopted, and which so is still wanted.
            if !cameByLink { next = source }
            // The list is that of the root. It stays the root as long as it has waiters, and belongs to the source.
            withExtendedLifetime(source) { source.root.noteWithdrawal() }
        } else if before & State.pointerMask != 0 {
            PromiseCore.release(upstream: before)
        }
        guard willRun else {
            dropWhatWaits()
            // (Others may be stopped by a job that comes to know of the cancellation, when the result is not its own.)
            if home != nil { result.didStop(self) }
            return .stopped(next)
        }
        // Its place in the list is still there, so it cannot stand in another one.
        if wasWaiting { EventLoop.ofCurrentThread.runInline(.passRetained(CancelledStart(self))) }
        return .willEnd(next)
    }
}

extension DispatchedNode {
    /// Puts the cancellation where the operation looks for what it is told. If the source has settled, the operation is
    /// still told of that, and the cancellation is what the result comes to.
    ///
    /// Returns what was there before, with its reference, unless that belongs to the cancellation now; `nil`, and nothing is
    /// done, if the operation has been taken out.
    private func tellOfCancellation(_ error: (any Error)?) -> UInt? {
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

/// The cancellation of a result whose node had already been told how its source has settled.
// @unchecked Sendable: as PromiseCore. `sourceWord` is constant from the moment that another thread may see the object.
final class LateCancellation: PromiseCore, @unchecked Sendable {
    /// The word that the node had: the source, and how that has settled. Owned, or 0.
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

/// What a dispatcher holds, so that the end of it is noticed.
private final class DispatchToken: Sendable {
    private let node: DispatchedNode

    init(_ node: DispatchedNode) { self.node = node }

    func run() { node.perform() }

    deinit { node.tokenWasReleased() }
}

/// Starts an operation that must run in any case, when its result has been cancelled.
private final class CancelledStart: Job {
    private let node: DispatchedNode

    init(_ node: DispatchedNode) {
        self.node = node
        super.init()
    }

    override func run() { node.start() }
}
