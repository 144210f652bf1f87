import Reactor
import Synchronization

/// What a waiting core does once its source has settled: the type behind `map`, `then`, `catch`, …
///
/// An operation is stored in its core, in two words, which is room for one closure; a larger one gets a block of
/// its own. It is a struct with the closure as a field and not the closure itself, because a function that is stored
/// as a bare generic value is wrapped in another one first.
@usableFromInline
protocol Operation<Input, Output> {
    /// The value of the source.
    associatedtype Input
    /// The value of the core that the operation settles.
    associatedtype Output

    /// Runs on the core's loop. Must end with exactly one of the `finish` methods of `core`.
    consuming func run(_ source: Source<Input>, _ core: Core)
}

/// A core that has settled, as an operation sees it.
@usableFromInline
struct Source<Value> {
    // Unmanaged: whoever runs the operation holds the core meanwhile.
    @usableFromInline let reference: Unmanaged<Core>
    @usableFromInline let isFulfilled: Bool

    @inlinable @inline(__always)
    init(_ reference: Unmanaged<Core>, isFulfilled: Bool) {
        self.reference = reference
        self.isFulfilled = isFulfilled
    }

    @inlinable
    var core: Core { reference.takeUnretainedValue() }

    /// Only if fulfilled.
    @inlinable @inline(__always)
    var value: Value { reference._withUnsafeGuaranteedRef { $0.value(as: Value.self) } }

    /// Only if rejected.
    @inlinable @inline(__always)
    var error: any Error { reference._withUnsafeGuaranteedRef { $0.error } }

    @inlinable
    var result: Result<Value, any Error> { isFulfilled ? .success(value) : .failure(error) }
}

extension Core {
    /// A pending core whose operation runs on this thread's loop.
    @inlinable @inline(__always)
    convenience init<Op: Operation>(_ operation: Op) {
        self.init(state: State.pending, loop: EventLoop.addressOfThisThread) { Core.perform(Op.self, $0, $1) }
        Self.store(operation, at: operationAddress, capacity: 16)
    }

    /// A pending core whose operation runs inline, on whichever thread settles its source.
    @inlinable @inline(__always)
    convenience init<Op: Operation>(inline operation: Op, isOnlyWatching: Bool = false) {
        self.init(state: State.pending, loop: nil, isOnlyWatching: isOnlyWatching) { Core.perform(Op.self, $0, $1) }
        Self.store(operation, at: operationAddress, capacity: 16)
    }

    /// A pending core whose operation runs inline where the source is settled on this thread, and otherwise as a job of
    /// this thread's loop: values that must not cross threads stay at home.
    @inlinable @inline(__always)
    convenience init<Op: Operation>(inlineAtHome operation: Op) {
        self.init(state: State.pending, loop: EventLoop.addressOfThisThread, isInlineAtHome: true) {
            Core.perform(Op.self, $0, $1)
        }
        Self.store(operation, at: operationAddress, capacity: 16)
    }

    /// A pending core that whoever holds it settles.
    @inlinable @inline(__always)
    convenience init<Value>(root type: Value.Type) {
        self.init(state: State.pending, loop: EventLoop.addressOfThisThread) {
            Core.perform(Follow<Value>.self, $0, $1)
        }
    }

    /// A core that is born fulfilled. It never waits, and so belongs to no loop.
    @inlinable @inline(__always)
    convenience init<Value>(value: consuming Value) {
        let flags = State.fulfilled | Self.flags(Value.self)
        self.init(state: flags, loop: nil) { Core.perform(Follow<Value>.self, $0, $1) }
        storeValue(value)
    }

    /// A core that is born rejected.
    @inlinable
    convenience init(error: any Error, origin: Origin?) {
        self.init(state: State.rejected, loop: nil) { _, _ in }
        storeError(error, origin)
    }

    @inlinable @inline(__always)
    static func flags<Value>(_ type: Value.Type) -> UInt {
        _isPOD(type) && isInline(type, capacity: 24) ? State.isTrivial : 0
    }

    @inlinable
    static func perform<Op: Operation>(_ type: Op.Type, _ core: Core, _ phase: Phase) {
        switch phase {
        case .run:
            let word = core.sourceWord
            let source = Unmanaged<Core>.fromOpaque(UnsafeRawPointer(bitPattern: word & State.pointerMask)!)
            let operation = take(Op.self, at: core.operationAddress, capacity: 16)
            operation.run(Source(source, isFulfilled: word & State.kindMask == State.fulfilled), core)
            source.release()
        case .drop:
            _ = take(Op.self, at: core.operationAddress, capacity: 16)
            core.dropSource()
        case .destroy:
            _ = take(Op.Output.self, at: core.payloadAddress, capacity: 24)
        }
    }

    /// The node was delivered but never ran.
    @usableFromInline
    func dropSource() {
        guard let source = UnsafeRawPointer(bitPattern: sourceWord & State.pointerMask) else { return }
        Unmanaged<Core>.fromOpaque(source).release()
    }

    // MARK: How an operation ends. Each consumes the running reference to the core.

    @inlinable @inline(__always)
    func finish<Value>(_ value: consuming Value) {
        storeValue(value)
        settle(State.fulfilled | Self.flags(Value.self))
    }

    @usableFromInline
    func finish(throwing error: any Error) {
        storeError(error, nil)
        settle(State.rejected)
    }

    /// The source's rejection, passed on with its origin.
    @usableFromInline
    func finish(rejectedAs source: Core) {
        storeError(source.error, source.origin)
        settle(State.rejected)
    }

    @inlinable @inline(__always)
    func finish<Value>(as source: Source<Value>) {
        if source.isFulfilled { finish(source.value) } else { finish(rejectedAs: source.core) }
    }

    /// As `inner` will settle.
    @inlinable @inline(__always)
    func finish<Value>(following inner: Core, as type: Value.Type) {
        code = { Core.perform(Follow<Value>.self, $0, $1) }
        sourceWord = 0
        follow(inner)
    }

    /// The same where there is no error to report a circle with.
    @inlinable @inline(__always)
    func finish<Value>(followingGuarantee inner: Core, as type: Value.Type) {
        precondition(inner.root !== root, "a guarantee's handler returned that guarantee, which would wait for itself")
        finish(following: inner, as: type)
    }
}

/// How a core that was made by hand is settled by whoever holds it, and holds the right to settle it.
extension Core {
    @inlinable
    func fulfill<Value>(_ value: consuming Value) {
        retain()
        finish(value)
    }

    @usableFromInline
    func reject(_ error: any Error) {
        storeError(error, placeOfMaking)
        retain()
        settle(State.rejected)
    }
}

/// Settles as its source did. Also what a core without an operation has: it is empty, and knows the value's type.
@usableFromInline
struct Follow<Value>: Operation {
    @usableFromInline typealias Input = Value
    @usableFromInline typealias Output = Value

    @inlinable init() {}

    @inlinable
    consuming func run(_ source: Source<Value>, _ core: Core) { core.finish(as: source) }
}
