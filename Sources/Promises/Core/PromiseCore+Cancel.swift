import Glibc
import Reactor
import Synchronization

// How a promise is cancelled, and how the cancellation climbs to the promise that it waits for.
//
// An operation belongs to one thread and is cancelled there; an externally settled promise is cancelled on any thread
// that could settle it. A waiter that is withdrawn loses its operation at once, but its node stays in the source's list
// until that is swept or delivered: other threads may be pushing onto it.

extension PromiseCore {
    /// Rejects this core with `error`, or with `PromiseError.cancelled`, and ends the work that would have settled it.
    /// The promise that it waits for is cancelled too, if it has no other waiters. If the core has settled, nothing
    /// happens.
    ///
    /// Any thread; a core that belongs to another thread is cancelled there, later.
    func cancel(with error: (any Error)? = nil) { root.cancel(root === self ? .itself(error) : .byLink(error)) }

    /// The origin of a cancellation, which determines its effect on a root. With the error, if that is not
    /// `PromiseError.cancelled`.
    enum Request {
        /// The user cancelled this very promise.
        case itself((any Error)?)
        /// The user cancelled a promise that has been linked to this one.
        case byLink((any Error)?)
        /// The promise's time limit has expired: it does not wait for clean-ups.
        case expired(any Error)
        /// A waiter of this promise has withdrawn.
        case unobserved

        var isUnwanted: Bool {
            if case .unobserved = self { true } else { false }
        }

        var isOfItself: Bool {
            if case .itself = self { true } else { false }
        }

        var error: (any Error)? {
            switch self {
            case .itself(let error), .byLink(let error): error
            case .expired(let error): error
            case .unobserved: nil
            }
        }
    }

    func cancel(_ request: Request) {
        var climb = CancellationClimb(from: self, request)
        cancel(request, &climb)
    }

    fileprivate func cancel(_ request: Request, _ climb: inout CancellationClimb) {
        // A loop instead of a recursion: a chain may be a million long.
        var step = cancelThisCore(request, &climb)
        while let (core, request) = step { step = core.cancelThisCore(request, &climb) }
        // Last, as a rejection comes to it: behind the hooks of the work above.
        climb.end()
    }

    /// Cancels a promise that its holder no longer needs, unless another handler waits for it. Any thread.
    func cancelIfUnobserved() { cancel(.unobserved) }

    /// Cancels one of several promises that are no longer needed, unless another handler waits for it. On this thread
    /// one cancellation runs after the other, never inside the other, since combinators nest.
    /// - Parameter climb: what is known of the clean-ups above.
    func enqueueCancel(_ climb: CancellationClimb) {
        EventLoop.ofCurrentThread.runInline(.passRetained(CancelJob(self, .unobserved, climb)))
    }

    /// Cancels this core alone.
    /// - Returns: the core to cancel next, with the request for it: the root, if this core has been linked; the source
    ///   that this core was waiting for.
    private func cancelThisCore(_ request: Request, _ climb: inout CancellationClimb) -> (PromiseCore, Request)? {
        let seen = state.load(ordering: .acquiring) & (State.kindMask | State.isClaimed)
        if seen & State.kindMask == State.link {
            // A handler has returned this promise, and its own promise waits for it.
            if request.isUnwanted { return nil }
            if case .expired = request { return (root, request) }
            return (root, .byLink(request.error))
        }
        if role.contains(.externallySettled) {
            guard !request.isUnwanted || !isWanted else { return nil }
            climb.rise()
            let stopping = cancelExternally(with: request.error)
            if case .stopped(let source) = stopping {
                let settle = { [self] in
                    reject(request.error ?? Self.cancellationError, from: creationSite, as: Self.rejection(by: request))
                    didCancel()
                }
                if let source, source.isBehindCleanUps { _ = AfterCleanUps(source, on: nil, settle) } else { settle() }
            }
            guard let source = stopping.source else { return nil }
            climb.restart(from: source)
            return (source, .unobserved)
        }
        guard seen == State.pending, let loop else { return nil }
        if loop == EventLoop.addressOfThisThread {
            // What the end of the loop would do is not to depend on the order in which it releases things.
            if EventLoop.ofCurrentThread.hasEnded { return nil }
            return cancelOnOwnThread(request, &climb).map { ($0, .unobserved) }
        }
        // While it is pending, its loop still exists. The thread of that loop may link it between the two times that
        // this thread reads its state. The root, which may belong to any thread, is then tried instead.
        var isLinked = false
        EventLoop.post(CancelJob(self, request), toLoopAt: loop) {
            let seen = state.load(ordering: .acquiring)
            isLinked = seen & State.kindMask == State.link
            return seen & (State.kindMask | State.isClaimed) == State.pending
        }
        return isLinked ? (self, request) : nil
    }

    /// An unhandled cancellation is not reported. The mark saves the core's deinit from examining the error.
    static func rejection(by request: Request) -> UInt {
        request.error == nil ? State.rejected | State.isHandled : State.rejected
    }

    private func cancelOnOwnThread(_ request: Request, _ climb: inout CancellationClimb) -> PromiseCore? {
        guard !request.isUnwanted || !isWanted else { return nil }
        climb.rise()
        if case .expired = request { climb.place = .free }
        // The promise that a handler has returned settles this core.
        let word = upstream.load(ordering: .relaxed)
        let hasAdopted = word & Upstream.mark == Upstream.adopted
        if hasAdopted && request.isOfItself && rejectOwnWaiters(request.error) { return nil }
        let producer = hasAdopted ? Self.core(word) : self
        switch producer.stop(with: request.error, &climb) {
        case .refused: return nil
        case .willEnd(let source): return source
        case .stopped(let source):
            // The producer may be running right now, and end later.
            if producer !== self { producer.state.bitwiseOr(State.isClaimed, ordering: .relaxed) }
            // Code that ran when the operation was dropped may have settled this core first.
            if isOpen && settled == nil {
                reject(request.error ?? Self.cancellationError, from: nil, as: Self.rejection(by: request))
            }
            return source
        }
    }

    /// For a promise whose handler returned another promise that has further waiters: the waiters of this promise
    /// receive the cancellation, and the other promise continues, for its further waiters.
    ///
    /// The two are one core, so this promise stays pending and will show the outcome of the other one.
    /// - Returns: false if there are no further waiters; then nothing has been done.
    private func rejectOwnWaiters(_ error: (any Error)?) -> Bool {
        guard let first = lockWaiters() else { return false }
        let isShared = Self.nodes(from: first).contains { node in
            let waiter = Self.core(node)
            return waiter.cameByLink && isListening(waiter)
        }
        guard isShared else {
            unlockWaiters()
            return false
        }
        // A `hang` keeps waiting: this promise stays pending, and wakes it in the end.
        var oldest = takeOutAndUnlock(first) { !$0.cameByLink && !$0.role.contains(.onlyWatching) }
        while let node = oldest {
            oldest = node._withUnsafeGuaranteedRef { $0.next }
            let word = PromiseCore.cancellation(error)
            guard !Self.deliver(node, from: address, word) else { continue }
            // Withdrawn before, or meanwhile.
            PromiseCore.release(upstream: word)
            node.release()
        }
        return true
    }

    /// Ends the producer of this core, on the core's own thread, without waiting for a clean-up.
    func stop() -> Stopping {
        var climb = CancellationClimb()
        return stop(with: nil, &climb)
    }

    /// Ends the producer of this core, on the core's own thread.
    private func stop(with error: (any Error)?, _ climb: inout CancellationClimb) -> Stopping {
        if isEndingCancelled { return .willEnd(nil) }
        let word = upstream.load(ordering: .acquiring)
        if word == 0 {
            if climb.place == .last && cancelProducerLater(with: error, climb) { return .willEnd(nil) }
            return cancelProducer() ? .stopped(nil) : .refused
        }
        if word == Upstream.taken { return .stopped(nil) }
        if role.contains(.shielding) && word & Upstream.mark == Upstream.waiting && !isAdopting {
            // It waits for a clean-up that has begun.
            dropWhatWaits()
            rejectWhenRun(with: error)
            return .willEnd(nil)
        }
        // The operation must run in any case, unless it already has.
        let willRun = role.contains(.runsWhenCancelled) && !isAdopting
        // Retained before the node withdraws: afterwards nothing keeps the source alive on its behalf.
        let source = word & Upstream.mark == Upstream.waiting ? Self.core(word) : nil
        guard
            let source,
            upstream.compareExchange(expected: word, desired: Upstream.taken, ordering: .acquiringAndReleasing)
                .exchanged
        else {
            // The source has settled, perhaps on another thread, and this node is scheduled to run.
            if willRun {
                isEndingCancelled = true
                let outcome = upstream.load(ordering: .acquiring)
                if outcome & Upstream.hasNoOutcome == 0 {
                    runAndReject(with: error)
                } else {
                    upstream.store(PromiseCore.cancellation(error), ordering: .relaxed)
                    PromiseCore.release(upstream: outcome)
                }
                return .willEnd(nil)
            }
            dropOperation()
            waitsNoMore()
            return .stopped(nil)
        }
        // A waiter that was attached through a link waits for a promise that another promise has adopted. That promise
        // is still wanted.
        let next = cameByLink ? nil : source
        hasArrived()
        defer { source.noteWithdrawal() }
        let isHeld = climb.place == .behind
        if willRun || isHeld {
            isEndingCancelled = true
            if !willRun {
                dropWhatWaits()
                rejectWhenRun(with: error)
            }
            let run = CancelledRun(self, error)
            if isHeld { run.wait(for: source) } else { climb.runLast(run) }
            return .willEnd(next)
        }
        dropWhatWaits()
        waitsNoMore()
        return .stopped(next)
    }

    func waitsNoMore() {
        guard countsAsWaiting, let loop else { return }
        countsAsWaiting = false
        Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.handlerDidDetach() }
    }

    /// `hasArrived` and `waitsNoMore`.
    @inline(__always)
    func leaveLoop() {
        if let loop { leaveLoop(loop) }
    }

    @inline(__always)
    func leaveLoop(_ loop: UnsafeMutableRawPointer) {
        if outsideNumber != 0 { leaveOutside(loop) }
        guard countsAsWaiting else { return }
        countsAsWaiting = false
        Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.handlerDidDetach() }
    }

    /// This waiter has arrived on its loop's thread, or has been withdrawn there: no other thread will post it.
    @inline(__always)
    func hasArrived() {
        if outsideNumber != 0, let loop { leaveOutside(loop) }
    }

    /// The `Upstream` word of a node whose source has been cancelled.
    static func cancellation(_ error: (any Error)?, _ mark: UInt = Upstream.rejected) -> UInt {
        let source = error.map(cancelled(with:)) ?? cancelled
        return UInt(bitPattern: Unmanaged.passRetained(source).toOpaque()) | mark
    }

    /// Shared by all cancellations: each conversion of an enumeration to `any Error` makes a box, and a race cancels
    /// all promises but one.
    static let cancellationError: any Error = PromiseError.cancelled

    private static let cancelled = cancelled(with: cancellationError)

    private static func cancelled(with error: any Error) -> PromiseCore {
        let core = PromiseCore(error: error, origin: nil)
        core.markHandled()
        return core
    }

    /// Withdraws this waiter, which belongs to this thread. If its source has settled, nothing happens: it has run, or
    /// is about to. The caller must hold the core that the waiter was attached to.
    /// - Returns: whether it was withdrawn.
    @discardableResult
    func withdraw() -> Bool {
        let word = upstream.load(ordering: .acquiring)
        guard
            word & Upstream.mark == Upstream.waiting,
            upstream.compareExchange(expected: word, desired: Upstream.taken, ordering: .acquiringAndReleasing)
                .exchanged
        else { return false }
        hasArrived()
        code(self, .drop)
        Self.core(word).noteWithdrawal()
        return true
    }
}

/// Cancels a promise on the thread that it belongs to.
private final class CancelJob: Job {
    private let core: PromiseCore
    private let request: PromiseCore.Request
    private let climb: CancellationClimb?

    init(_ core: PromiseCore, _ request: PromiseCore.Request, _ climb: CancellationClimb? = nil) {
        self.core = core
        self.request = request
        self.climb = climb
        super.init()
    }

    override func run() {
        var climb = climb ?? CancellationClimb(from: core, request)
        core.cancel(request, &climb)
    }

    // Not a handler: the handlers that it would have cancelled are reported themselves.
    override var isReportedUndelivered: Bool { false }
}
