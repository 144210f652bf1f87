import Reactor
import Synchronization

/// The promise of an operator with `on:`.
///
/// It is settled on the thread where the handler runs, and so, like the promise of a resolver, by the thread that
/// claims it. Its waiter is a separate object, a `DispatchedNode` in the list of the source. The two retain each other
/// until the result settles. It always settles, because a source notifies all its waiters before it is deallocated.
// @unchecked: as PromiseCore.
@usableFromInline
final class DispatchedResult: PromiseCore, @unchecked Sendable {
    private let place: CallSite
    private let failure: Failure
    /// The node that will settle the result: its address, owned; or 0 while there is none; or `closed`. The thread that
    /// replaces the word owns the previous one.
    private let node = Atomic<UInt>(0)
    private static var closed: UInt { 1 }
    /// The node from which a cancellation has taken the operation. Owned by the thread that has claimed the result.
    private var stopped: DispatchedNode?
    /// The loop that counts the job. Written before any other code has this promise.
    final var home: EventLoop.Remote?
    /// The loop of the thread that attached the handler, if it does not count the job. By this, a `hang` there knows
    /// that another thread is at work. Written before any other code has this promise.
    final var sender: EventLoop.Remote?
    /// Whether the job has been dispatched, and the promise not settled since.
    private let isDispatched = Atomic(false)

    /// What happens to the promise when its handler cannot run.
    @usableFromInline
    enum Failure {
        /// It is rejected.
        case byError
        /// It is a guarantee, and is abandoned.
        case inSilence
        /// The handler was a `catch`, and a `finally` may follow.
        case beforeAnEnd
    }

    @usableFromInline override var creationSite: CallSite? { place }

    @usableFromInline
    init(_ place: CallSite, fails failure: Failure, code: @escaping (PromiseCore, Phase) -> Void) {
        self.place = place
        self.failure = failure
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, role: .externallySettled, code: code)
    }

    @inlinable @inline(__always)
    convenience init<Value>(
        root type: Value.Type, fails failure: Failure, _ file: StaticString, _ line: UInt
    ) {
        self.init(CallSite(file, line), fails: failure) { PromiseCore.perform(Follow<Value>.self, $0, $1) }
    }

    // MARK: The node

    /// Stores the first node, which is in the list of its source. By now it may have run, or been replaced by another.
    @usableFromInline
    func setFirstNode(_ first: DispatchedNode) {
        let word = UInt(bitPattern: Unmanaged.passRetained(first).toOpaque())
        let isStored = node.compareExchange(expected: 0, desired: word, ordering: .acquiringAndReleasing).exchanged
        if !isStored { Self.release(word) }
    }

    /// Stores the node that follows the previous one. Returns `false` if the result has settled, or is being cancelled.
    func replaceNode(by next: DispatchedNode) -> Bool {
        let word = UInt(bitPattern: Unmanaged.passRetained(next).toOpaque())
        var seen = node.load(ordering: .relaxed)
        while seen != Self.closed {
            let (done, now) = node.weakCompareExchange(
                expected: seen, desired: word, ordering: .acquiringAndReleasing)
            if done {
                Self.release(seen)
                return true
            }
            seen = now
        }
        Self.release(word)
        return false
    }

    private static func release(_ word: UInt) {
        guard word > closed else { return }
        Unmanaged<DispatchedNode>.fromOpaque(UnsafeRawPointer(bitPattern: word)!).release()
    }

    /// Counts the job, which is about to be dispatched.
    func didDispatch() {
        guard let sender, !isDispatched.exchange(true, ordering: .acquiringAndReleasing) else { return }
        sender.beginDispatchedJob()
        // A cancellation on another thread may have checked before.
        if settled != nil { didReturn() }
    }

    private func didReturn() {
        if isDispatched.exchange(false, ordering: .acquiringAndReleasing) { sender?.endDispatchedJob() }
    }

    // MARK: End. Only for the thread that has claimed the result.

    /// Settles with the payload that is in place.
    @usableFromInline
    func end(_ outcome: UInt) {
        retain()
        settle(outcome)
        didReturn()
        Self.release(node.exchange(Self.closed, ordering: .acquiringAndReleasing))
    }

    @usableFromInline
    func end(rejectedWith error: any Error) {
        storeError(error, place)
        end(State.rejected)
    }

    /// Ends a result whose handler will never run with the outcome of its source: the dispatcher has refused the job
    /// with `error`, or released it without running it.
    func endWithoutRunning(_ source: Unmanaged<PromiseCore>, _ error: (any Error)?) {
        if let error, case .byError = failure { return end(rejectedWith: error) }
        Reports.abandoned(provenance(origin: creationSite))
        let outcome = PromiseError.noProducer
        if case .beforeAnEnd = failure {
            source._withUnsafeGuaranteedRef { Reports.unhandled($0.error, $0.provenance(origin: $0.origin)) }
            store(())
            end(State.fulfilled | PromiseCore.flags(Void.self))
        } else if outcome.staysPending {
            endAbandoned()
        } else {
            end(rejectedWith: outcome)
        }
    }

    func endAbandoned() {
        abandon()
        didReturn()
        Self.release(node.exchange(Self.closed, ordering: .acquiringAndReleasing))
    }

    /// The error if a handler has returned the promise that waits for it.
    var errorOfWaitingForItself: any Error {
        if case .byError = failure { return PromiseError.returnedSelf }
        preconditionFailure("a handler returned its own guarantee, which would then wait for itself")
    }

    // MARK: Cancellation

    override var mayWaitForCleanUps: Bool { true }

    override func cancelExternally(with error: (any Error)?) -> Stopping {
        // The job may end at this moment, on its own thread, and find nothing left to settle. The loop must not end
        // before the cancellation has reached it.
        home?.beginExternalWork()
        guard claim() else {
            home?.endExternalWork()
            return .refused
        }
        let word = node.exchange(Self.closed, ordering: .acquiringAndReleasing)
        guard word > Self.closed else { return .stopped(nil) }
        let node = Unmanaged<DispatchedNode>.fromOpaque(UnsafeRawPointer(bitPattern: word)!).takeRetainedValue()
        let stopping = node.stop(for: error)
        // The operation then starts again, and is counted again.
        if case .willEnd = stopping { home?.endExternalWork() }
        return stopping
    }

    /// Remembers the node of a job that will never begin. The job is counted until the result has settled.
    func didStop(_ node: DispatchedNode) { stopped = node }

    override func didCancel() {
        stopped.take()?.releaseExternalWork()
        home?.endExternalWork()
        didReturn()
    }
}
