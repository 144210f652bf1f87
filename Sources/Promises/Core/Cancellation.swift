import Glibc
import Reactor
import Synchronization

// How a promise is cancelled, and how that climbs to what it waits for.
//
// An operation belongs to one thread, and is cancelled there; a promise made by hand is cancelled wherever it could be
// settled. A waiter that is withdrawn leaves its operation at once, but its place in the list it stands in only when
// that is swept or delivered: other threads may be pushing onto it.

extension Core {
    /// Rejects this core with `error`, or with `PromiseError.cancelled`, and ends the work that would have settled it; what it
    /// waits for is cancelled, if nobody else waits there. If it has settled, nothing happens.
    ///
    /// Any thread; what belongs to another thread is cancelled there, later.
    func cancel(with error: (any Error)? = nil) { root.cancel(root === self ? .itself(error) : .byLink(error)) }

    /// Who asks for a root's cancellation, and what it means. With the error, if that is not `PromiseError.cancelled`.
    enum Request {
        /// The user, of the promise that this is.
        case itself((any Error)?)
        /// The user, of a promise that has been linked to this one.
        case byLink((any Error)?)
        /// Who has waited for it, and does not any more.
        case unwanted

        var isUnwanted: Bool {
            if case .unwanted = self { true } else { false }
        }

        var isOfItself: Bool {
            if case .itself = self { true } else { false }
        }

        var error: (any Error)? {
            switch self {
            case .itself(let error), .byLink(let error): error
            case .unwanted: nil
            }
        }
    }

    func cancel(_ request: Request) {
        // Not one inside the other: a chain may be a million long.
        var source = cancelAlone(request)
        while let next = source { source = next.cancelAlone(.unwanted) }
    }

    /// Cancels what its holder has given up, if nobody else waits for it. Any thread.
    func cancelUnlessWanted() {
        // If it has been linked, somebody's handler has returned it, and waits for it.
        if root === self { cancel(.unwanted) }
    }

    /// The same for one of several that are not wanted any more: on this thread one after the other, never one inside the
    /// other, since combinators nest.
    func cancelInTurn() {
        EventLoop.ofThisThread.runInline(.passRetained(CancelJob(self, .unwanted)))
    }

    /// Answers what it was waiting for, if that is to be cancelled next.
    private func cancelAlone(_ request: Request) -> Core? {
        if role.contains(.madeByHand) {
            guard !request.isUnwanted || !isWanted else { return nil }
            let stopping = stopByHand(with: request.error)
            guard case .stopped = stopping else { return stopping.source }
            storeError(request.error ?? Self.cancellationError, placeOfMaking)
            retain()
            settle(State.rejected)
            hasStopped()
            return stopping.source
        }
        guard isOpen, let loop else { return nil }
        if loop == EventLoop.addressOfThisThread {
            // While it ends, other threads discard what it would have run, and are the ones to settle that.
            if EventLoop.ofThisThread.hasEnded { return nil }
            return cancelHere(request)
        }
        // While it is pending, the loop that it belongs to is still there.
        let job = CancelJob(self, request)
        EventLoop.post(job, toLoopAt: loop) { self.settled == nil && self.root === self }
        return nil
    }

    private func cancelHere(_ request: Request) -> Core? {
        guard !request.isUnwanted || !isWanted else { return nil }
        // What a handler has returned settles this core in its place.
        let word = upstream.load(ordering: .relaxed)
        let isAdopting = word & Upstream.mark == Upstream.adopted
        if isAdopting && request.isOfItself && tellOwnWaitersOnly(request.error) { return nil }
        let producer = isAdopting ? Self.core(word) : self
        switch producer.stop(with: request.error) {
        case .refused: return nil
        case .willEnd(let source): return source
        case .stopped(let source):
            // It may be running just now, and end later.
            if producer !== self { producer.state.bitwiseOr(State.isClaimed, ordering: .relaxed) }
            // What the operation's end has run may have been faster.
            if isOpen && settled == nil {
                storeError(request.error ?? Self.cancellationError, nil)
                retain()
                settle(State.rejected)
            }
            return source
        }
    }

    /// For a promise whose handler returned another, which others wait for too: those who wait for this one are told that it
    /// was cancelled, and the other goes on, for the rest. False if there are no others, and nothing has been done.
    ///
    /// The two are one core, so this promise stays pending and will show the outcome of the other one.
    private func tellOwnWaitersOnly(_ error: (any Error)?) -> Bool {
        guard let first = lockWaiters() else { return false }
        let isShared = Self.nodes(from: first).contains { node in
            let waiter = Self.core(node)
            return waiter.cameByLink && isListening(waiter)
        }
        guard isShared else {
            unlockWaiters()
            return false
        }
        // A `hang` goes on: this promise stays pending, and is to wake it in the end.
        var oldest = takeOutAndUnlock(first) { !$0.cameByLink && !$0.role.contains(.onlyWatching) }
        while let node = oldest {
            oldest = node._withUnsafeGuaranteedRef { $0.next }
            let word = Core.cancellation(error)
            guard !Self.deliver(node, from: address, word) else { continue }
            // Withdrawn meanwhile, or before.
            Core.release(upstream: word)
            node.release()
        }
        return true
    }

    /// What becomes of a producer that is to stop; with the source that it was waiting for, if that is to be told next.
    enum Stopping {
        /// It cannot be stopped.
        case refused
        /// It has ended, without settling anything.
        case stopped(Core?)
        /// It is told of the cancellation like of any rejection, by a job, and settles then.
        case willEnd(Core?)

        var source: Core? {
            switch self {
            case .refused: nil
            case .stopped(let source), .willEnd(let source): source
            }
        }
    }

    /// Ends what would settle this core, on its own thread.
    func stop(with error: (any Error)? = nil) -> Stopping {
        let word = upstream.load(ordering: .acquiring)
        if word == 0 { return stopProducing() ? .stopped(nil) : .refused }
        // Still counted: it is about to be told.
        if word == Upstream.taken { return countsAsWaiting ? .willEnd(nil) : .stopped(nil) }
        // What must run in any case, unless it has already.
        let willRun = role.contains(.runsWhenCancelled) && !isForwarding
        // Held before we withdraw: from then on nobody keeps it for our sake.
        let source = word & Upstream.mark == Upstream.waiting ? Self.core(word) : nil
        guard
            let source,
            upstream.compareExchange(expected: word, desired: Upstream.taken, ordering: .acquiringAndReleasing)
                .exchanged
        else {
            // It has settled, on another thread perhaps, and we are on our way to run.
            if willRun {
                Core.release(upstream: upstream.exchange(Core.cancellation(error), ordering: .acquiring))
                return .willEnd(nil)
            }
            dropOperation()
            waitsNoMore()
            return .stopped(nil)
        }
        // Who came by a link waits for a promise that another one has adopted, and which so is still wanted.
        let next = role.contains(.shielding) || cameByLink ? nil : source
        defer { source.noteWithdrawal() }
        if willRun {
            EventLoop.ofThisThread.enqueue(CancelledRun(self, error))
            return .willEnd(next)
        }
        dropWhatWaits()
        waitsNoMore()
        return .stopped(next)
    }

    func waitsNoMore() {
        guard countsAsWaiting else { return }
        countsAsWaiting = false
        EventLoop.ofThisThread.handlerWaitsNoMore()
    }

    /// The word of a node whose source has been cancelled.
    static func cancellation(_ error: (any Error)?, _ mark: UInt = Upstream.rejected) -> UInt {
        let source = error.map(cancelled(with:)) ?? cancelled
        return UInt(bitPattern: Unmanaged.passRetained(source).toOpaque()) | mark
    }

    /// One for all, since each `any Error` of an enumeration is a box of its own, and a race cancels all but one.
    static let cancellationError: any Error = PromiseError.cancelled

    private static let cancelled = cancelled(with: cancellationError)

    private static func cancelled(with error: any Error) -> Core {
        let core = Core(error: error, origin: nil)
        core.markHandled()
        return core
    }

    /// Takes this waiter of this thread back. If its source has settled, nothing happens: it has run, or is about to.
    ///
    /// Whoever calls this must hold the core that the waiter was attached to.
    func withdraw() {
        let word = upstream.load(ordering: .acquiring)
        guard
            word & Upstream.mark == Upstream.waiting,
            upstream.compareExchange(expected: word, desired: Upstream.taken, ordering: .acquiringAndReleasing)
                .exchanged
        else { return }
        code(self, .drop)
        let source = Self.core(word)
        if source.mayLockWaiters { source.sweep() } else { source.noteWithdrawal() }
    }
}

/// Cancels a promise on the thread that it belongs to.
private final class CancelJob: Job {
    private let core: Core
    private let request: Core.Request

    init(_ core: Core, _ request: Core.Request) {
        self.core = core
        self.request = request
        super.init()
    }

    override func run() {
        let root = core.root
        if root === core { return core.cancel(request) }
        // Linked since. The promise whose handler has returned it waits for it, so it is not unwanted.
        if !request.isUnwanted { root.cancel(.byLink(request.error)) }
    }
}

/// Calls the body if the promise was cancelled; see `Resolver.onCancel`.
struct OnCancel: Operation {
    typealias Input = Void
    typealias Output = Void
    let body: () -> Void
    // It is not counted among the handlers that wait, which keep the loop object for who settles the promise.
    private let loop = EventLoop.ofThisThread

    init(_ body: @escaping () -> Void) { self.body = body }

    func run(_ source: Source<Void>, _ core: Core) {
        if (source.core as? HandMadeCore)?.isCancelled == true { body() }
        core.finish(())
    }
}

/// Runs an operation that must run in any case, with a cancellation as its source's outcome. The node itself still has
/// its place in the list of the source.
private final class CancelledRun: Job {
    private let core: Core
    private let error: (any Error)?

    init(_ core: Core, _ error: (any Error)?) {
        self.core = core
        self.error = error
        super.init()
    }

    override func run() {
        core.upstream.store(Core.cancellation(error), ordering: .relaxed)
        core.retain()
        core.runAndRelease()
    }

    override func discardAndRelease() {
        core.code(core, .drop)
        core.producerIsGone(.loopEnded)
        let loop = core.countsAsWaiting ? core.loop : nil
        super.discardAndRelease()
        if let loop { Core.handlerIsGone(fromLoopAt: loop) }
    }
}
