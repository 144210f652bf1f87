import Reactor
import Synchronization

/// The one object behind a promise: its state, its value, its place in every queue, and the operation that will
/// settle it.
///
/// `map` makes one of these and nothing else: the child promise *is* the waiter in its parent's list, *is* the job in
/// the loop's ready queue, *is* the mail to another thread. So a hop costs two allocations, of which the user's
/// closure is one.
///
/// The class is not generic. A generic class's methods run unspecialised when they are reached through its vtable, so
/// its `deinit` would look up metadata for every value; here the specialised code is a closure without captures,
/// made in `@inlinable` code where the types are known.
///
/// The life of the `payload`, three words:
///
///     waiting for a source    the operation: one closure and one more word
///     pending, made by hand   -
///     fulfilled               the value, or a pointer to it if it takes more than 24 bytes
///     rejected                the error | file and line of the promise that was rejected first
// @unchecked Sendable: `state` decides who may touch the rest. While pending, `payload` belongs to the one holder of
// the right to settle, and `next` to the list that the node stands in; once settled, `payload` is constant until
// deinit. Each hand-over is a releasing store and an acquiring load of `state`, or a loop's mailbox. Values of a type
// that is not Sendable stay on one thread because Promise<T> then is not Sendable either.
@usableFromInline
class PromiseCore: Job, @unchecked Sendable {
    /// Tag and pointer: see `State`.
    @usableFromInline final let state: Atomic<UInt>
    /// The loop whose thread runs this node's operation, by its address: the loop object lives as long as a handler
    /// waits on it. `nil`: the operation runs inline, on the thread that settles the source.
    @usableFromInline final let loop: UnsafeMutableRawPointer?
    /// What the node does; specialised. A constant, so that calling it retains nothing.
    @usableFromInline final let code: (PromiseCore, Phase) -> Void
    @exclusivity(unchecked)
    private final var payload: (UInt, UInt, UInt) = (0, 0, 0)
    /// What the node waits for, and how far that has come: see `Upstream`.
    @usableFromInline final let upstream = Atomic<UInt>(0)
    final let role: Role
    // Two flags in one byte: a further field would be one more store in the making of every promise. Accessed only on the
    // loop's thread.
    @exclusivity(unchecked) private final var ownMarks: UInt8 = 0
    /// Whether it, or a core that is linked to it, waits to become as its source, without a link.
    final var isAdopting: Bool {
        get { ownMarks & 1 != 0 }
        set { ownMarks = newValue ? ownMarks | 1 : ownMarks & ~1 }
    }
    /// Whether a cancellation has reached it that its operation is told of: it settles when the operation has ended, and
    /// another cancellation adds nothing.
    @usableFromInline final var isEndingCancelled: Bool {
        get { ownMarks & 2 != 0 }
        set { ownMarks = newValue ? ownMarks | 2 : ownMarks & ~2 }
    }
    /// Whether the loop counts it among the handlers that wait on it. Of the loop's thread.
    @exclusivity(unchecked) final var countsAsWaiting = false
    /// Which tables beside the cores know it: `isRecorded`, `isNoted`. Atomic since any thread may set it, and another be the
    /// last.
    final let annotations = Atomic<UInt8>(0)
    /// `TraceRegistry` knows it. Set under the lock there.
    static var isRecorded: UInt8 { 1 }
    /// Its thread may never drive its loop, so the place is noted; see `EventLoop.note`.
    static var isNoted: UInt8 { 2 }
    /// Whether it waits here by way of a promise that was linked to the one whose list it stands in. Written before it is
    /// pushed there.
    @exclusivity(unchecked) final var cameByLink = false
    /// How many waiters have been withdrawn and still stand in the list, and when to sweep it: see `Withdrawal`.
    final let withdrawals = Atomic<UInt32>(0)

    /// What `code` is asked for.
    @usableFromInline
    enum Phase {
        /// The source has settled: take the operation out and carry it through. The caller's reference to the node goes to
        /// the operation.
        case run
        /// The operation will not run: destroy it.
        case drop
        /// The node dies fulfilled: destroy the value.
        case destroy
    }

    /// What kind of node it is, for life.
    @usableFromInline
    struct Role: OptionSet {
        @usableFromInline let rawValue: UInt8
        @usableFromInline init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Although it belongs to a loop, its operation runs inline where the source is settled on that loop's thread.
        @usableFromInline static var inlineAtHome: Role { Role(rawValue: 1) }
        /// It waits without being told: it does not make a rejection a handled one.
        static var onlyWatching: Role { Role(rawValue: 2) }
        /// Its waiting is no reason to go on with what it waits for. Only a `WatchingCore` has this.
        static var notListening: Role { Role(rawValue: 4) }
        /// It is a `hang`'s, runs nothing, and so has no place in the order of the others.
        static var onlyWaking: Role { Role(rawValue: 64) }
        /// A timer cancels it if its source takes too long.
        @usableFromInline static var hasDeadline: Role { Role(rawValue: 128) }
        /// What a promise that is settled with it as the only waiter must look at.
        static var unusual: Role { [.inlineAtHome, .onlyWatching] }
        /// Its operation is told of a cancellation and not destroyed by it: it cleans up.
        @usableFromInline static var runsWhenCancelled: Role { Role(rawValue: 16) }
        /// A cancellation does not go on from here to what it waits for.
        @usableFromInline static var shielding: Role { Role(rawValue: 32) }
        /// Who claims it settles it, from any thread: a resolver, or a job of a dispatcher.
        @usableFromInline static var externallySettled: Role { Role(rawValue: 8) }
    }

    @usableFromInline
    init(state: UInt, loop: UnsafeMutableRawPointer?, role: Role = [], code: @escaping (PromiseCore, Phase) -> Void) {
        self.state = Atomic(state)
        self.loop = loop
        self.code = code
        self.role = role
        super.init()
    }

    // MARK: Payload

    // Object header, Job.next, state, loop, code. The payload is reached by address and never by name: the
    // optimiser must see that a closure stored there escapes. A typed pointer from withUnsafeMutablePointer hid that,
    // and `var done = false; p.done { done = true }; while !done { … }` became an endless loop in client code.
    @usableFromInline static var payloadOffset: Int { 16 + 8 + 8 + 8 + 16 }

    @usableFromInline @inline(__always)
    final var payloadAddress: UnsafeMutableRawPointer {
        // Sound while `self` is alive; every use is a single load or store in a method of `self`.
        Unmanaged.passUnretained(self).toOpaque() + Self.payloadOffset
    }

    /// Whether the payload has room for a `Value`, or for the pointer to a block of its own.
    @inlinable @inline(__always)
    static func isInline<Value>(_ type: Value.Type) -> Bool {
        MemoryLayout<Value>.size <= 24 && MemoryLayout<Value>.alignment <= 8
    }

    /// Stores the value of a promise that is about to be fulfilled, or the operation of one that waits.
    @inlinable @inline(__always)
    final func store<Value>(_ value: consuming Value) {
        if Self.isInline(Value.self) {
            payloadAddress.initializeMemory(as: Value.self, to: value)
        } else {
            let block = UnsafeMutablePointer<Value>.allocate(capacity: 1)
            block.initialize(to: value)
            payloadAddress.storeBytes(of: block, as: UnsafeMutablePointer<Value>.self)
        }
    }

    @inlinable @inline(__always)
    final func stored<Value>(_ type: Value.Type) -> UnsafeMutablePointer<Value> {
        Self.isInline(Value.self)
            ? payloadAddress.assumingMemoryBound(to: Value.self)
            : payloadAddress.load(as: UnsafeMutablePointer<Value>.self)
    }

    @inlinable @inline(__always)
    final func take<Value>(_ type: Value.Type) -> Value {
        let place = stored(type)
        let value = place.move()
        if !Self.isInline(Value.self) { place.deallocate() }
        return value
    }

    /// The value of a fulfilled promise; a copy.
    @inlinable @inline(__always)
    final func value<Value>(as type: Value.Type) -> Value { stored(type).pointee }

    /// Not generic: a generic parameter would open the existential and store the error inside the box.
    @usableFromInline
    final func storeError(_ error: any Error, _ origin: CallSite?) {
        payloadAddress.initializeMemory(as: (any Error).self, to: error)
        storeOrigin(origin)
    }

    /// The error of a rejected promise; a copy.
    @usableFromInline
    final var error: any Error { payloadAddress.assumingMemoryBound(to: (any Error).self).pointee }

    @usableFromInline
    final func storeOrigin(_ origin: CallSite?) { (payloadAddress + 8).storeBytes(of: origin, as: CallSite?.self) }

    /// Where a rejected promise was made, or the one that was rejected first, if that was made by hand.
    @usableFromInline
    final var origin: CallSite? { (payloadAddress + 8).load(as: CallSite?.self) }

    /// The words of a payload as they are: to move a settlement from a linked promise to its root.
    final func movePayload(from other: PromiseCore) {
        payloadAddress.copyMemory(from: other.payloadAddress, byteCount: 24)
    }

    /// Where the promise was made, if that was by hand.
    @usableFromInline
    var creationSite: CallSite? { nil }

    /// Ends the work that would settle this promise, which has no source. On its loop's thread; any thread for a promise
    /// made by hand. False if that cannot be done, or somebody was faster; if true, the right to settle is the caller's.
    func cancelProducer() -> Bool { false }

    /// Whether what settles this promise, which has no source, waits for handlers that run further down this thread's stack;
    /// see `isHeldUp`.
    func areSourcesHeldUp(_ here: UnsafeMutableRawPointer, _ limit: inout Int) -> Bool { false }

    /// What becomes of a producer that is to stop; with the source that it was waiting for, if that is to be told next.
    enum Stopping {
        /// It cannot be stopped.
        case refused
        /// It has ended, without settling anything.
        case stopped(PromiseCore?)
        /// It is told of the cancellation like of any rejection, by a job, and settles then.
        case willEnd(PromiseCore?)

        var source: PromiseCore? {
            switch self {
            case .refused: nil
            case .stopped(let source), .willEnd(let source): source
            }
        }
    }

    /// `cancelProducer` for a promise made by hand that may wait for something, on any thread; see `Stopping`.
    func cancelExternally(with error: (any Error)?) -> Stopping { cancelProducer() ? .stopped(nil) : .refused }

    /// `cancelExternally` has stopped it, and it has settled.
    func didCancel() {}

    // MARK: Running

    /// Whether a drop only destroys the payload, which another core may do in its place. If not, `code` needs this very core.
    var dropsOnlyPayload: Bool { true }

    /// The node as a job: its source has settled.
    override func runAndRelease() {
        if countsAsWaiting, let loop {
            countsAsWaiting = false
            Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.handlerDidDetach() }
        }
        let word = upstream.load(ordering: .relaxed)
        if word & Upstream.hasNoOutcome == 0 { return isAdopting ? completeAdoption() : code(self, .run) }
        // Cancelled after it was queued; or nobody will ever settle the source.
        if word & Upstream.mark == Upstream.abandoned {
            dropOperation()
            abandon()
        }
        Unmanaged.passUnretained(self).release()
    }

    override var isReportedUndelivered: Bool { !role.contains(.onlyWatching) }
    override var isCountedAsWaiting: Bool { countsAsWaiting }

    /// It is pending, and is not one of those that stay so forever. Under a lock that its end would need, since it may be
    /// about to end: so it is not retained.
    override var isStillWaiting: Bool {
        isPendingAtRoot && unmanagedRoot.toOpaque() != Unmanaged.passUnretained(PromiseCore.never).toOpaque()
    }

    /// Whether it is pending, for who does not own it; see `isStillWaiting`.
    final var isPendingAtRoot: Bool {
        let root = unmanagedRoot
        let kind = root._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) } & State.kindMask
        // A link: made since.
        return kind == State.pending || kind == State.link
    }

    // Asked only while handlers are measured.
    override var kind: HandlerKind { .promiseHandler }
    override var startedAt: CallSite? {
        record?.step.flatMap { $0.origin.isKnown ? $0.origin : nil }
    }
    override var subject: (any AnyObject & Sendable)? { record }

    /// The node will not run: the loop that its handler was attached on has ended, or is about to.
    override func discardAndRelease() {
        if let loop { leaveOperation(toThreadOf: loop) }
        dropOperation()
        producerDidEnd(.loopEnded)
        let loop = countsAsWaiting ? loop : nil
        super.discardAndRelease()
        if let loop { Self.handlerIsGone(fromLoopAt: loop) }
    }

    /// Hands the operation, and what its closure has captured, to the loop's thread to release, if this is another one and
    /// that one goes on after the loop. Those who wait for this core's result are told here, at once.
    private func leaveOperation(toThreadOf loop: UnsafeMutableRawPointer) {
        // The loop object is there: it outlives every handler that waits on it.
        let eventLoop = Unmanaged<EventLoop>.fromOpaque(loop)
        guard eventLoop._withUnsafeGuaranteedRef({ $0.isInheritedElsewhere }), !isAdopting else { return }
        let word = upstream.exchange(Upstream.taken, ordering: .acquiring)
        let mark = word & Upstream.mark
        guard mark != Upstream.taken && mark != Upstream.adopted else { return }
        // It stands in no list, waits for nothing, and drops its operation when it goes.
        let carrier = PromiseCore(state: State.pending, loop: nil, code: code)
        carrier.movePayload(from: self)
        if mark != Upstream.waiting { Self.release(upstream: word) }
        eventLoop._withUnsafeGuaranteedRef { $0.releaseOnOwnThread(carrier) }
    }

    /// A handler that waited on that loop will not run.
    static func handlerIsGone(fromLoopAt loop: UnsafeMutableRawPointer) {
        if loop == EventLoop.addressOfThisThread {
            EventLoop.ofCurrentThread.handlerDidDetach()
        } else {
            // The loop object is there: it outlives every handler that waits on it.
            Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.outstandingHandlerDidEnd() }
        }
    }

    /// One more reference, for whoever consumes one.
    @usableFromInline @inline(__always)
    final func retain() { _ = Unmanaged.passUnretained(self).retain() }

    deinit {
        let isAnnotated = annotations.load(ordering: .relaxed) != 0
        // A plain value leaves nothing to do; not even a call.
        let seen = state.load(ordering: .acquiring) & (State.kindMask | State.isTrivial)
        if seen == State.fulfilled | State.isTrivial && !isAnnotated { return }
        if isAnnotated { endAnnotated() } else { end() }
    }
}
