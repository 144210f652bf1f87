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
///     waiting for a source    source, once it has settled | operation: one closure, two words
///     pending, made by hand   -                           | -
///     fulfilled               the value, or a pointer to it if it takes more than 24 bytes
///     rejected                the error                   | file and line of the promise that was rejected first
// @unchecked Sendable: `state` decides who may touch the rest. While pending, `payload` belongs to the one holder of
// the right to settle, and `next` to the list that the node stands in; once settled, `payload` is constant until
// deinit. Each hand-over is a releasing store and an acquiring load of `state`, or a loop's mailbox. Values of a type
// that is not Sendable stay on one thread because Promise<T> then is not Sendable either.
@usableFromInline
class Core: Job, @unchecked Sendable {
    /// Tag and pointer: see `State`.
    @usableFromInline final let state: Atomic<UInt>
    /// The loop whose thread runs this node's operation, by its address: the loop object lives as long as a handler
    /// waits on it. `nil`: the operation runs inline, on the thread that settles the source.
    @usableFromInline final let loop: UnsafeMutableRawPointer?
    @exclusivity(unchecked)
    @usableFromInline final var code: (Core, Phase) -> Void
    @exclusivity(unchecked)
    private final var payload: (UInt, UInt, UInt) = (0, 0, 0)
    /// Whether its operation, although it belongs to a loop, runs inline where the source is settled on that loop's thread.
    final let isInlineAtHome: Bool
    /// Whether it waits without being told: it does not make a rejection a handled one.
    final let isOnlyWatching: Bool

    /// Whether it waits to become as its source, without a link. Of the loop's thread.
    @exclusivity(unchecked) final var isForwarding = false

    /// What `code` is asked for.
    @usableFromInline
    enum Phase {
        /// The source has settled: take the operation out and carry it through. The caller's reference to the node goes to
        /// the operation.
        case run
        /// The node dies before it ran: destroy the operation.
        case drop
        /// The node dies fulfilled: destroy the value.
        case destroy
    }

    @usableFromInline
    init(
        state: UInt, loop: UnsafeMutableRawPointer?, isInlineAtHome: Bool = false, isOnlyWatching: Bool = false,
        code: @escaping (Core, Phase) -> Void
    ) {
        self.state = Atomic(state)
        self.loop = loop
        self.code = code
        self.isInlineAtHome = isInlineAtHome
        self.isOnlyWatching = isOnlyWatching
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

    @usableFromInline @inline(__always)
    final var operationAddress: UnsafeMutableRawPointer { payloadAddress + 8 }

    /// Where a `Value` in the room of `capacity` bytes at `address` really is: there, or in a block of its own.
    @inlinable @inline(__always)
    static func isInline<Value>(_ type: Value.Type, capacity: Int) -> Bool {
        MemoryLayout<Value>.size <= capacity && MemoryLayout<Value>.alignment <= 8
    }

    @inlinable @inline(__always)
    static func store<Value>(_ value: consuming Value, at address: UnsafeMutableRawPointer, capacity: Int) {
        if isInline(Value.self, capacity: capacity) {
            address.initializeMemory(as: Value.self, to: value)
        } else {
            let block = UnsafeMutablePointer<Value>.allocate(capacity: 1)
            block.initialize(to: value)
            address.storeBytes(of: block, as: UnsafeMutablePointer<Value>.self)
        }
    }

    @inlinable @inline(__always)
    static func stored<Value>(
        _ type: Value.Type, at address: UnsafeMutableRawPointer, capacity: Int
    ) -> UnsafeMutablePointer<Value> {
        isInline(Value.self, capacity: capacity)
            ? address.assumingMemoryBound(to: Value.self)
            : address.load(as: UnsafeMutablePointer<Value>.self)
    }

    @inlinable @inline(__always)
    static func take<Value>(_ type: Value.Type, at address: UnsafeMutableRawPointer, capacity: Int) -> Value {
        let place = stored(type, at: address, capacity: capacity)
        let value = place.move()
        if !isInline(Value.self, capacity: capacity) { place.deallocate() }
        return value
    }

    @inlinable @inline(__always)
    final func storeValue<Value>(_ value: consuming Value) { Self.store(value, at: payloadAddress, capacity: 24) }

    /// The value of a fulfilled promise; a copy.
    @inlinable @inline(__always)
    final func value<Value>(as type: Value.Type) -> Value {
        Self.stored(type, at: payloadAddress, capacity: 24).pointee
    }

    /// Not generic: a generic parameter would open the existential and store the error inside the box.
    @usableFromInline
    final func storeError(_ error: any Error, _ origin: Origin?) {
        payloadAddress.initializeMemory(as: (any Error).self, to: error)
        storeOrigin(origin)
    }

    /// The error of a rejected promise; a copy.
    @usableFromInline
    final var error: any Error { payloadAddress.assumingMemoryBound(to: (any Error).self).pointee }

    @usableFromInline
    final func storeOrigin(_ origin: Origin?) { operationAddress.storeBytes(of: origin, as: Origin?.self) }

    /// Where a rejected promise was made, or the one that was rejected first, if that was made by hand.
    @usableFromInline
    final var origin: Origin? { operationAddress.load(as: Origin?.self) }

    /// The source's address with its outcome in the low bits; zero while the source is pending.
    @usableFromInline @inline(__always)
    final var sourceWord: UInt {
        get { payloadAddress.load(as: UInt.self) }
        set { payloadAddress.storeBytes(of: newValue, as: UInt.self) }
    }

    /// The words of a payload as they are: to move a settlement from a linked promise to its root.
    final func movePayload(from other: Core) {
        payloadAddress.copyMemory(from: other.payloadAddress, byteCount: 24)
    }

    /// Where the promise was made, if that was by hand.
    @usableFromInline
    var placeOfMaking: Origin? { nil }

    // MARK: Running

    /// The node as a job: its source has settled.
    override func runAndRelease() {
        if loop != nil { EventLoop.unmanagedOfThisThread._withUnsafeGuaranteedRef { $0.handlerWaitsNoMore() } }
        code(self, .run)
    }

    /// The node will not run: the loop that its handler was attached on has ended, or is about to.
    override func discardAndRelease() {
        let loop = loop
        super.discardAndRelease()
        guard let loop else { return }
        if loop == EventLoop.addressOfThisThread {
            EventLoop.ofThisThread.handlerWaitsNoMore()
        } else {
            // The loop object is there: it outlives every handler that waits on it.
            Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.orphanIsGone() }
        }
    }

    /// The node as the job of a timer: it is fulfilled with Void, see `after`.
    override func run() { fulfill(()) }

    /// One more reference, for whoever consumes one.
    @usableFromInline @inline(__always)
    final func retain() { _ = Unmanaged.passUnretained(self).retain() }

    deinit { end() }
}

/// A promise that was made by hand, and knows where. Any thread may ask it at any time.
@usableFromInline
final class HandMadeCore: Core, @unchecked Sendable {
    private let place: Origin

    @usableFromInline override var placeOfMaking: Origin? { place }

    @usableFromInline
    init(_ place: Origin, code: @escaping (Core, Phase) -> Void) {
        self.place = place
        super.init(state: State.pending, loop: EventLoop.addressOfThisThread, code: code)
    }

    @inlinable @inline(__always)
    convenience init<Value>(root type: Value.Type, _ file: StaticString, _ line: UInt) {
        self.init(Origin(file, line)) { Core.perform(Follow<Value>.self, $0, $1) }
    }
}

/// The state word: a tag in the low four bits, and a pointer above them.
@usableFromInline
enum State {
    // What the pointer is: the newest waiter; the same, for those who come during a settlement; the link's root (+1).
    @usableFromInline static var pending: UInt { 0 }
    @usableFromInline static var fulfilled: UInt { 1 }
    @usableFromInline static var rejected: UInt { 2 }
    @usableFromInline static var link: UInt { 3 }
    @usableFromInline static var kindMask: UInt { 3 }

    /// Pending or linked: a resolver has won the right to settle.
    @usableFromInline static var isClaimed: UInt { 4 }
    /// Fulfilled: the value needs no destruction.
    @usableFromInline static var isTrivial: UInt { 4 }
    /// Rejected: somebody has been told.
    @usableFromInline static var isHandled: UInt { 4 }
    /// Settled, and waiters are still being handed on, so later ones must queue behind them.
    @usableFromInline static var isSettling: UInt { 8 }

    /// What a rejection becomes that has waiters: they are told.
    @inline(__always)
    static func handled(_ outcome: UInt) -> UInt { outcome & kindMask == rejected ? outcome | isHandled : outcome }

    @usableFromInline static var pointerMask: UInt { ~15 }
}
