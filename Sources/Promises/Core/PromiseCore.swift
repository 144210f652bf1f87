import Reactor
import Synchronization

/// The one object behind a promise: its state, its value, its place in every queue, and the operation that will settle
/// it.
///
/// `map` makes one of these and nothing else: the child promise *is* the waiter in its parent's list, *is* the job in
/// the loop's ready queue, *is* the mail to another thread. So a hop needs two blocks, of which the user's closure is
/// one, and the other is often one that the loop has kept: see `PromiseCore+Reuse.swift`.
///
/// The class is not generic. A generic class's methods run unspecialised when they are called through its vtable, so
/// its `deinit` would look up metadata for every value; here the specialised code is a closure without captures, made
/// in `@inlinable` code where the types are known.
///
/// The contents of the `payload`, three words:
///
///     waiting for a source           the operation: one closure and one more word
///     pending, externally settled    -
///     pending, of a connection       the producer, not owned; see `beginProduction`
///     pending, of a timer            the timer's id
///     fulfilled                      the value, or a pointer to it if it takes more than 24 bytes
///     rejected                       the error | file and line of the promise that was rejected first
// @unchecked Sendable: `state` decides which thread may access the rest. While pending, `payload` belongs to the one
// holder of the right to settle, and `next` to the list that contains the node; once settled, `payload` is constant
// until deinit. Each hand-over is a releasing store and an acquiring load of `state`, or a loop's mailbox. Values of a
// type that is not Sendable stay on one thread because Promise<T> then is not Sendable either.
@usableFromInline
class PromiseCore: Job, @unchecked Sendable {
    /// Tag and pointer: see `State`.
    @usableFromInline final let state: Atomic<UInt>
    /// The address of the loop whose thread runs this node's operation: the loop does not end before the waiters that other
    /// threads may notify have been withdrawn, or have arrived. `nil`: the operation runs inline, on the thread that settles
    /// the source.
    @usableFromInline final let loop: UnsafeMutableRawPointer?
    /// The node's specialised code for each `Phase`. A constant, so that calling it retains nothing.
    @usableFromInline final let code: (PromiseCore, Phase) -> Void
    @exclusivity(unchecked)
    private final var payload: (UInt, UInt, UInt) = (0, 0, 0)
    /// What the node waits for, and the progress of that: see `Upstream`.
    @usableFromInline final let upstream = Atomic<UInt>(0)
    final let role: Role
    // Flags in one byte: another field would be one more store in the making of every promise. Accessed only on the
    // loop's thread.
    @exclusivity(unchecked) private final var ownMarks: UInt8 = 0
    /// Whether it, or a core that is linked to it, waits to adopt another core's outcome, without a link.
    final var isAdopting: Bool {
        get { ownMarks & 1 != 0 }
        set { ownMarks = newValue ? ownMarks | 1 : ownMarks & ~1 }
    }
    /// Whether its operation receives a cancellation: the core settles when the operation has ended, and another
    /// cancellation has no effect.
    @usableFromInline final var isEndingCancelled: Bool {
        get { ownMarks & 2 != 0 }
        set { ownMarks = newValue ? ownMarks | 2 : ownMarks & ~2 }
    }
    /// Whether the payload refers to the producer that will settle it; see `beginProduction`.
    final var hasHeldProducer: Bool {
        @inline(__always) get { ownMarks & 4 != 0 }
        @inline(__always) set { ownMarks = newValue ? ownMarks | 4 : ownMarks & ~4 }
    }
    /// Whether it is the job of a timer that has not fired, whose id is in the payload; see After.swift.
    final var hasTimer: Bool {
        @inline(__always) get { ownMarks & 8 != 0 }
        @inline(__always) set { ownMarks = newValue ? ownMarks | 8 : ownMarks & ~8 }
    }
    /// Whether the loop counts it among its waiting handlers. Accessed only on the loop's thread.
    @exclusivity(unchecked) final var countsAsWaiting = false
    /// Which tables have an entry for it, `isRecorded` and `isNoted`, `isHeldWeakly`, and `isLetGo`. Atomic since any thread that has a
    /// reference may set it, and another thread may release the core. No loop uses a core with any of them again.
    final let annotations = Atomic<UInt8>(0)
    /// `TraceRegistry` has an entry for it. Set under the lock there.
    static var isRecorded: UInt8 { 1 }
    /// Its thread may never drive its loop, so the call site is noted; see `EventLoop.note`.
    static var isNoted: UInt8 { 2 }
    /// A weak reference leads to it; see `WeakCore`.
    static var isHeldWeakly: UInt8 { 4 }
    /// A combinator that has settled no longer waits for it: it continues, and if it is rejected without a handler, that is not
    /// reported.
    static var isLetGo: UInt8 { 8 }
    /// Whether it was attached through a promise that was linked to its source. Written before the node is pushed.
    @exclusivity(unchecked) final var cameByLink = false
    /// How many withdrawn waiters are still in the list, and when to sweep it: see `Withdrawal`.
    final let withdrawals = Atomic<UInt32>(0)
    /// Its number among the `OutsideWaiters` of its loop, or zero. Accessed only on the loop's thread.
    @exclusivity(unchecked) final var outsideNumber: UInt32 = 0

    /// The argument of `code`.
    @usableFromInline
    enum Phase {
        /// The source has settled: take the operation out and run it. The operation consumes the caller's reference to
        /// the node.
        case run
        /// The operation will not run: destroy it.
        case drop
        /// The node is released and fulfilled: destroy the value.
        case destroy
    }

    /// The constant properties of a node.
    @usableFromInline
    struct Role: OptionSet {
        @usableFromInline let rawValue: UInt8
        @usableFromInline init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Although the node belongs to a loop, its operation runs inline if the source is settled on that loop's
        /// thread.
        @usableFromInline static var inlineAtHome: Role { Role(rawValue: 1) }
        /// The node does not make a rejection a handled one.
        static var onlyWatching: Role { Role(rawValue: 2) }
        /// The node is no reason to keep its source's producer working: a `WatchingCore`, or a `CancelledRun`.
        static var notListening: Role { Role(rawValue: 4) }
        /// The node belongs to a `hang`. It runs nothing, and therefore has no place in the order of the others.
        static var onlyWaking: Role { Role(rawValue: 64) }
        /// A timer cancels the node if its source takes too long.
        @usableFromInline static var hasDeadline: Role { Role(rawValue: 128) }
        /// The roles that exclude a node from the fast path of a settlement.
        static var unusual: Role { [.inlineAtHome, .onlyWatching] }
        /// The operation cleans up: a cancellation does not destroy it but runs it, with the cancellation as its
        /// source's outcome.
        @usableFromInline static var runsWhenCancelled: Role { Role(rawValue: 16) }
        /// A cancellation of the node does not continue to its source, and rejects the node when the source has settled.
        @usableFromInline static var shielding: Role { Role(rawValue: 32) }
        /// Any thread may settle the core, once it has claimed it: a resolver, or a job of a dispatcher.
        @usableFromInline static var externallySettled: Role { Role(rawValue: 8) }
    }

    @usableFromInline
    init(state: UInt, loop: UnsafeMutableRawPointer?, role: Role = [], code: @escaping (PromiseCore, Phase) -> Void) {
        self.state = Atomic(state)
        self.loop = loop
        self.code = code
        self.role = role
        super.init()
        #if DEBUG
            CoreLayout.check(self)
        #endif
    }

    /// Makes the fields that are not constant, apart from state and upstream, those of a new core.
    @inline(__always)
    final func resetMarks() {
        ownMarks = 0
        countsAsWaiting = false
        cameByLink = false
        withdrawals.store(0, ordering: .relaxed)
    }

    // MARK: Payload

    // Object header, Job.next, state, loop, code: CoreLayout checks it in debug builds. The payload is accessed by address and never by name: the optimiser
    // must see that a closure stored there escapes. A typed pointer from withUnsafeMutablePointer hid that, and `var
    // done = false; p.done { done = true }; while !done { … }` became an endless loop in client code.
    @usableFromInline static var payloadOffset: Int { 16 + 8 + 8 + 8 + 16 }

    /// For `CoreLayout`: whether these words are the payload, which is empty.
    final func hasPayload(at words: UnsafeMutablePointer<UInt>) -> Bool {
        payload = (1, 2, 3)
        defer { payload = (0, 0, 0) }
        return words[0] == 1 && words[1] == 2 && words[2] == 3
    }

    @usableFromInline @inline(__always)
    final var payloadAddress: UnsafeMutableRawPointer {
        // Sound while `self` is alive; every use is a single load or store in a method of `self`.
        Unmanaged.passUnretained(self).toOpaque() + Self.payloadOffset
    }

    /// Whether a `Value` fits into the payload; otherwise the payload holds a pointer to a block of its own.
    @inlinable @inline(__always)
    static func isInline<Value>(_ type: Value.Type) -> Bool {
        MemoryLayout<Value>.size <= 24 && MemoryLayout<Value>.alignment <= 8
    }

    /// Stores the value of a promise that is about to be fulfilled, or the operation of a waiting one.
    @inlinable @inline(__always)
    final func store<Value>(_ value: consuming Value) { Self.store(value, inPayloadAt: payloadAddress) }

    @inlinable @inline(__always)
    static func store<Value>(_ value: consuming Value, inPayloadAt address: UnsafeMutableRawPointer) {
        if isInline(Value.self) {
            address.initializeMemory(as: Value.self, to: value)
        } else {
            let block = UnsafeMutablePointer<Value>.allocate(capacity: 1)
            block.initialize(to: value)
            address.storeBytes(of: block, as: UnsafeMutablePointer<Value>.self)
        }
    }

    /// As the method `store`, for a core to which the caller has this reference.
    @inline(__always)
    static func store<Value>(_ value: consuming Value, in core: Unmanaged<PromiseCore>) {
        store(value, inPayloadAt: core.toOpaque() + payloadOffset)
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

    /// The value of a fulfilled promise: moved out if the caller's reference is the only one, since then no other party
    /// can ever read it; otherwise a copy.
    @inlinable @inline(__always)
    final func takeOrCopy<Value>(_ type: Value.Type) -> Value {
        guard isReferencedOnce else { return value(as: Value.self) }
        // Nothing is left for the deinit to destroy.
        state.store(State.fulfilled | State.isTrivial, ordering: .relaxed)
        return take(Value.self)
    }

    /// Whether the caller's reference is the only one. The check orders the reads of parties that have released theirs
    /// before what the caller does next, as for the buffer of an array.
    @inlinable @inline(__always)
    final var isReferencedOnce: Bool {
        // The reference is taken over and given back, so that the check counts no other.
        var core = Unmanaged.passUnretained(self).takeRetainedValue()
        let isOnly = isKnownUniquelyReferenced(&core)
        _ = Unmanaged.passRetained(core)
        return isOnly
    }

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

    /// The call site of the promise that was rejected first; nil if an operator made that promise.
    @usableFromInline
    final var origin: CallSite? { (payloadAddress + 8).load(as: CallSite?.self) }

    /// Copies the words of a payload: to move an outcome from a linked promise to its root.
    final func movePayload(from other: PromiseCore) {
        payloadAddress.copyMemory(from: other.payloadAddress, byteCount: 24)
    }

    /// Where the promise was made, if it is externally settled.
    @usableFromInline
    var creationSite: CallSite? { nil }

    /// Ends the work that would settle this promise, which has no source. Called on its loop's thread; for an
    /// externally settled promise, on any thread.
    /// - Returns: true if the work has ended; then the caller has the right to settle. False if the work cannot be
    ///   ended, or another thread has settled the promise.
    // Other threads call this for an externally settled core, and may not read the marks.
    func cancelProducer() -> Bool {
        if role.contains(.externallySettled) { return false }
        return hasTimer ? cancelTimer() : stopHeldProducer()
    }

    /// `cancelProducer` for a promise of this thread of which `inputs` wait for clean-ups: it settles after them.
    /// - Returns: false if it is no such promise.
    func cancelProducerLater(with error: (any Error)?, _ climb: CancellationClimb) -> Bool { false }

    /// The nodes that wait for the sources of a combinator.
    var inputs: [PromiseCore] { [] }

    /// Whether this externally settled promise may wait for another one, which its own thread cannot look at.
    var mayWaitForCleanUps: Bool { false }

    /// Whether the producer of this promise, which has no source, waits for handlers that run further down this
    /// thread's stack; see `isHeldUp`.
    func areSourcesHeldUp(_ here: UnsafeMutableRawPointer, _ limit: inout Int) -> Bool { false }

    /// The result of stopping a producer, with the source that it was waiting for, if that is to be cancelled next.
    enum Stopping {
        /// It cannot be stopped.
        case refused
        /// It has ended, without settling its promise.
        case stopped(PromiseCore?)
        /// A job runs it with the cancellation as its source's rejection, and it settles then.
        case willEnd(PromiseCore?)

        var source: PromiseCore? {
            switch self {
            case .refused: nil
            case .stopped(let source), .willEnd(let source): source
            }
        }
    }

    /// `cancelProducer` for an externally settled promise that may wait for another one. Any thread.
    func cancelExternally(with error: (any Error)?) -> Stopping { cancelProducer() ? .stopped(nil) : .refused }

    /// Called after `cancelExternally` has stopped the producer and the promise has settled.
    func didCancel() {}

    // MARK: Running

    /// Whether a drop only destroys the payload, which another core may do in its place. If false, `code` needs this
    /// very core.
    var dropsOnlyPayload: Bool { true }

    /// The core as the job of a timer, which has fired.
    override func run() { timerDidFire() }

    /// The node as a job: its source has settled.
    override func runAndRelease() {
        leaveLoop()
        let word = upstream.load(ordering: .relaxed)
        if word & Upstream.hasNoOutcome == 0 { return isAdopting ? completeAdoption() : code(self, .run) }
        // Cancelled after it was queued; or the source will never settle.
        if word & Upstream.mark == Upstream.abandoned {
            dropOperation()
            abandon()
        }
        Unmanaged.passUnretained(self).release()
    }

    override var isReportedUndelivered: Bool { !role.contains(.onlyWatching) }
    override var isCountedAsWaiting: Bool { countsAsWaiting }

    /// Whether it is pending, and not pending forever. Called under a lock that its deinit would need, since it may be
    /// about to be released: so it is not retained.
    override var isStillWaiting: Bool {
        isPendingAtRoot && unmanagedRoot.toOpaque() != Unmanaged.passUnretained(PromiseCore.never).toOpaque()
    }

    /// Whether it is pending, for callers that do not own it; see `isStillWaiting`.
    final var isPendingAtRoot: Bool {
        let root = unmanagedRoot
        let kind = root._withUnsafeGuaranteedRef { $0.state.load(ordering: .acquiring) } & State.kindMask
        // A link that was made since.
        return kind == State.pending || kind == State.link
    }

    // Called only while handlers are measured.
    override var kind: HandlerKind { .promiseHandler }
    override var startedAt: CallSite? {
        record?.step.flatMap { $0.origin.isKnown ? $0.origin : nil }
    }
    override var subject: (any AnyObject & Sendable)? { record }

    /// The node will not run: the loop that its handler was attached on is ending. On the thread of that loop.
    override func discardAndRelease() {
        leaveLoop()
        dropOperation()
        producerDidEnd(.loopEnded)
        super.discardAndRelease()
    }

    override func discardIfWaiting() -> Bool {
        let word = upstream.load(ordering: .acquiring)
        guard word & Upstream.mark == Upstream.waiting else { return false }
        // Retained before the node withdraws: afterwards nothing keeps the source alive on its behalf.
        let source = Self.core(word)
        let never = UInt(bitPattern: Unmanaged.passRetained(PromiseCore.never).toOpaque()) | Upstream.abandoned
        guard
            upstream.compareExchange(expected: word, desired: never, ordering: .acquiringAndReleasing).exchanged
        else {
            Self.release(upstream: never)
            return false
        }
        // The list of the source keeps its reference, to a tombstone.
        retain()
        discardAndRelease()
        source.noteWithdrawal()
        return true
    }

    /// Adds a reference, which a callee consumes.
    @usableFromInline @inline(__always)
    final func retain() { _ = Unmanaged.passUnretained(self).retain() }

    deinit {
        let isAnnotated = annotations.load(ordering: .relaxed) != 0
        // A plain value leaves nothing to do, not even a call.
        let seen = state.load(ordering: .acquiring) & (State.kindMask | State.isTrivial)
        if seen == State.fulfilled | State.isTrivial && !isAnnotated { return }
        if isAnnotated { endAnnotated() } else { end() }
    }
}
