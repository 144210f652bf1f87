import Reactor
import Synchronization

/// The promise of an operator with `on:`.
///
/// It is settled on whatever thread the handler runs, and so like a promise made by hand: by whoever claims it. What it
/// waits for stands in another object, a `DispatchedNode` in the list of the source. Each holds the other until the result
/// settles; that it does at some time, since a source tells all its waiters before it goes.
// @unchecked: as PromiseCore.
@usableFromInline
final class DispatchedResult: PromiseCore, @unchecked Sendable {
    private let place: CallSite
    private let failure: Failure
    /// The node that will settle it: its address, owned; or 0, while there is none; or closed. Who puts something else here
    /// owns what was here before.
    private let node = Atomic<UInt>(0)
    private static var closed: UInt { 1 }
    /// What a cancellation has taken the operation from. Of who has claimed the result.
    private var stopped: DispatchedNode?
    /// The loop that counts the job. Written before anybody else knows of this promise.
    final var home: EventLoop.Remote?
    /// The loop of the thread that attached the handler, if it does not count the job: so that a `hang` there knows that
    /// somebody else is at work. Written before anybody else knows of this promise.
    final var sender: EventLoop.Remote?
    /// Whether the job has been given to a dispatcher, and the promise not settled since.
    private let isOut = Atomic(false)

    /// What the promise does when its handler cannot run.
    @usableFromInline
    enum Failure {
        /// It is rejected.
        case byError
        /// It is a guarantee, and abandoned.
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

    // MARK: What it waits for

    /// `first` stands in the list of its source, and may have run, or be followed by another by now.
    @usableFromInline
    func waits(by first: DispatchedNode) {
        let word = UInt(bitPattern: Unmanaged.passRetained(first).toOpaque())
        let isThere = node.compareExchange(expected: 0, desired: word, ordering: .acquiringAndReleasing).exchanged
        if !isThere { Self.release(word) }
    }

    /// The same for one that takes over from the one before. False if the result has settled, or is being cancelled.
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

    /// Its job is about to be given to a dispatcher.
    func didDispatch() {
        guard let sender, !isOut.exchange(true, ordering: .acquiringAndReleasing) else { return }
        sender.beginDispatchedJob()
        // Who has cancelled it on another thread may have looked before.
        if settled != nil { didReturn() }
    }

    private func didReturn() {
        if isOut.exchange(false, ordering: .acquiringAndReleasing) { sender?.endDispatchedJob() }
    }

    // MARK: How it ends. Only for who has claimed it.

    /// With the payload that is in place.
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

    /// The handler will never run, with what its source has come to: the dispatcher has refused the job with `error`, or let
    /// it go.
    func endUnrun(_ source: Unmanaged<PromiseCore>, _ error: (any Error)?) {
        if let error, case .byError = failure { return end(rejectedWith: error) }
        Reports.abandoned(self)
        let outcome = PromiseError.ofNobody
        if case .beforeAnEnd = failure {
            source._withUnsafeGuaranteedRef { Reports.unhandled($0.error, $0.provenance(origin: $0.origin)) }
            store(())
            end(State.fulfilled | PromiseCore.flags(Void.self))
        } else if outcome.staysPending {
            endForsaken()
        } else {
            end(rejectedWith: outcome)
        }
    }

    func endForsaken() {
        abandon()
        didReturn()
        Self.release(node.exchange(Self.closed, ordering: .acquiringAndReleasing))
    }

    /// A handler has returned the very promise that waits for it.
    var errorOfWaitingForItself: any Error {
        if case .byError = failure { return PromiseError.returnedSelf }
        preconditionFailure("a guarantee's handler returned that guarantee, which would wait for itself")
    }

    // MARK: Cancellation

    override func cancelExternally(with error: (any Error)?) -> Stopping {
        // The job may end just now, on its own thread, and find nothing left to settle: the loop must not end before the
        // cancellation has reached it.
        home?.beginExternalWork()
        guard claim() else {
            home?.endExternalWork()
            return .refused
        }
        let word = node.exchange(Self.closed, ordering: .acquiringAndReleasing)
        guard word > Self.closed else { return .stopped(nil) }
        let node = Unmanaged<DispatchedNode>.fromOpaque(UnsafeRawPointer(bitPattern: word)!).takeRetainedValue()
        let stopping = node.stop(for: error)
        // Then it has begun anew, and is counted again.
        if case .willEnd = stopping { home?.endExternalWork() }
        return stopping
    }

    /// The job will never begin, and is counted until the result has settled.
    func didStop(_ node: DispatchedNode) { stopped = node }

    override func didCancel() {
        stopped.take()?.releaseExternalWork()
        home?.endExternalWork()
        didReturn()
    }
}
