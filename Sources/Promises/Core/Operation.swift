import Reactor
import Synchronization

/// What a waiting core does once its source has settled: the type behind `map`, `then`, `catch`, …
///
/// An operation is stored in its core, in three words: enough for a closure and one more word. A larger operation gets
/// a block of its own. It is a struct with the closure as a field, not the closure itself, because a function that is
/// stored as a bare generic value is first wrapped in another function.
@usableFromInline
protocol Operation<Input, Output> {
    /// The value of the source.
    associatedtype Input
    /// The value of the core that the operation settles.
    associatedtype Output

    /// Runs on the core's loop. Must end with exactly one of the `finish` methods of `core`.
    func run(_ source: Source<Input>, _ core: PromiseCore)
}

/// A core that has settled, as an operation sees it.
@usableFromInline
struct Source<Value> {
    // Unmanaged: the code that runs the operation holds the core meanwhile.
    @usableFromInline let reference: Unmanaged<PromiseCore>
    @usableFromInline let isFulfilled: Bool

    @inlinable @inline(__always)
    init(_ reference: Unmanaged<PromiseCore>, isFulfilled: Bool) {
        self.reference = reference
        self.isFulfilled = isFulfilled
    }

    @inlinable
    var core: PromiseCore { reference.takeUnretainedValue() }

    /// Only if fulfilled.
    @inlinable @inline(__always)
    var value: Value { reference._withUnsafeGuaranteedRef { $0.value(as: Value.self) } }

    /// The value, moved out of the source if this node has the only reference to it, and copied otherwise. So an array
    /// that a handler receives is not shared with the promise. Only if fulfilled, and only as the last use of the source.
    @inlinable @inline(__always)
    func takeValue() -> Value {
        _isPOD(Value.self) ? value : reference._withUnsafeGuaranteedRef { $0.takeOrCopy(Value.self) }
    }

    /// Only if rejected.
    @inlinable @inline(__always)
    var error: any Error { reference._withUnsafeGuaranteedRef { $0.error } }

    @inlinable
    var result: Result<Value, any Error> { isFulfilled ? .success(value) : .failure(error) }
}

/// The source of an operation that does not read the value, and therefore need not know its type. The `Input` of such
/// an operation is `Never`: there is no value that it could read.
@usableFromInline typealias AnySource = Source<Never>

extension PromiseCore {
    /// A pending core whose operation runs on this thread's loop.
    @inlinable @inline(__always)
    convenience init<Op: Operation>(_ operation: Op) {
        self.init(state: State.pending, loop: EventLoop.addressOfThisThread) { PromiseCore.perform(Op.self, $0, $1) }
        store(operation)
    }

    /// A pending core with this role, whose operation runs on this thread's loop.
    @inlinable @inline(__always)
    convenience init<Op: Operation>(_ operation: Op, role: Role) {
        self.init(state: State.pending, loop: EventLoop.addressOfThisThread, role: role) {
            PromiseCore.perform(Op.self, $0, $1)
        }
        store(operation)
    }

    /// A pending core whose operation runs inline, on whichever thread settles its source.
    @inlinable @inline(__always)
    convenience init<Op: Operation>(inline operation: Op) {
        self.init(state: State.pending, loop: nil) { PromiseCore.perform(Op.self, $0, $1) }
        store(operation)
    }

    /// A pending core that its holder settles, on this thread.
    @inlinable @inline(__always)
    convenience init<Value>(root type: Value.Type) {
        self.init(state: State.pending, loop: EventLoop.addressOfThisThread) {
            PromiseCore.perform(Follow<Value>.self, $0, $1)
        }
    }

    /// A core that is fulfilled from the start. It never waits, and therefore belongs to no loop.
    @inlinable @inline(__always)
    convenience init<Value>(value: consuming Value) {
        let flags = State.fulfilled | Self.flags(Value.self)
        self.init(state: flags, loop: nil) { PromiseCore.perform(Follow<Value>.self, $0, $1) }
        store(value)
    }

    /// A core that is rejected from the start.
    @inlinable
    convenience init(error: any Error, origin: CallSite?) {
        self.init(state: State.rejected, loop: nil) { _, _ in }
        storeError(error, origin)
    }

    /// Makes a core whose operation runs once this core has settled.
    @inlinable
    func derive<Op: Operation>(_ operation: consuming Op) -> PromiseCore {
        let child = PromiseCore.pending { PromiseCore.perform(Op.self, $0, $1) }
        child.store(operation)
        attach(child)
        return child
    }

    /// Makes a core with this role whose operation runs once this core has settled.
    @inlinable
    func derive<Op: Operation>(_ operation: consuming Op, role: Role) -> PromiseCore {
        let child = PromiseCore(operation, role: role)
        attach(child)
        return child
    }

    @inlinable @inline(__always)
    static func flags<Value>(_ type: Value.Type) -> UInt {
        _isPOD(type) && isInline(type) ? State.isTrivial : 0
    }

    @inlinable
    static func perform<Op: Operation>(_ type: Op.Type, _ core: PromiseCore, _ phase: Phase) {
        switch phase {
        case .run:
            let word = core.upstream.load(ordering: .relaxed)
            let source = Unmanaged<PromiseCore>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!)
            let operation = core.take(Op.self)
            core.upstream.store(Upstream.taken, ordering: .relaxed)
            operation.run(Source(source, isFulfilled: word & State.kindMask == State.fulfilled), core)
            PromiseCore.releaseOrKeep(source)
        case .drop:
            _ = core.take(Op.self)
        case .destroy:
            _ = core.take(Op.Output.self)
        }
    }

    // MARK: How an operation ends. Each consumes the running reference to the core.

    /// Whether the outcome of an operation still counts: its promise may have been cancelled while it ran.
    @inlinable @inline(__always)
    var isOpen: Bool {
        let seen = state.load(ordering: .relaxed)
        return seen & (State.kindMask | State.isClaimed) == State.pending
            || seen & (State.kindMask | State.isClaimed) == State.link
    }

    @inlinable @inline(__always)
    func finish<Value>(_ value: consuming Value) {
        guard isOpen else { return Unmanaged.passUnretained(self).release() }
        store(value)
        settle(State.fulfilled | Self.flags(Value.self))
    }

    @usableFromInline
    func finish(throwing error: any Error) {
        guard isOpen else { return Unmanaged.passUnretained(self).release() }
        storeError(error, nil)
        settle(State.rejected)
    }

    /// Rejects this core with the source's error and origin.
    @usableFromInline
    func finish(rejectedAs source: Unmanaged<PromiseCore>) {
        guard isOpen else { return Unmanaged.passUnretained(self).release() }
        source._withUnsafeGuaranteedRef { storeError($0.error, $0.origin) }
        settle(State.rejected)
    }

    @inlinable @inline(__always)
    func finish<Value>(as source: Source<Value>) {
        if source.isFulfilled { finish(source.value) } else { finish(rejectedAs: source.reference) }
    }

    /// Settles this core as `inner` settles.
    @inlinable @inline(__always)
    func finish<Value>(following inner: PromiseCore, as type: Value.Type) {
        // Nothing to wait for. Copying the value here, where its type is known, saves three indirect calls.
        if inner.state.load(ordering: .acquiring) & State.kindMask == State.fulfilled {
            return finish(inner.value(as: Value.self))
        }
        follow(inner) { PromiseCore.perform(Follow<Value>.self, $0, $1) }
    }

    /// Settles this core as `inner` settles. For a guarantee, which has no error to report a cycle with.
    @inlinable @inline(__always)
    func finish<Value>(followingGuarantee inner: PromiseCore, as type: Value.Type) {
        precondition(inner.root !== root, "a handler returned its own guarantee, which would then wait for itself")
        finish(following: inner, as: type)
    }
}

/// Settles as its source did. It is also the operation of a core without one: it is empty, and knows the type of the
/// value.
@usableFromInline
struct Follow<Value>: Operation {
    @usableFromInline typealias Input = Value
    @usableFromInline typealias Output = Value

    @inlinable init() {}

    @inlinable @inline(__always)
    func run(_ source: Source<Value>, _ core: PromiseCore) { core.finish(as: source) }
}
