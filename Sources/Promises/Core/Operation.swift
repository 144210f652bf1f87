import Reactor

/// The code that a waiting core runs once its source has settled. `map`, `then`, `catch` and so on each have their own
/// type.
///
/// An operation is stored in its core, in three words: enough for a closure and one more word. A larger operation gets
/// its own block. It is a struct with a closure in a field, because a function stored as a bare generic value would be
/// wrapped in another function.
@usableFromInline
package protocol Operation<Input, Output>: ~Copyable {
    /// The value of the source.
    associatedtype Input
    /// The value that the operation settles its core with.
    associatedtype Output = Void

    /// Runs the operation, on the core's loop or inline. Must end with one `finish`, `wait` or `enqueueAgain`, which
    /// consumes the running reference to `core`.
    consuming func run(_ source: Source<Input>, _ core: PromiseCore)

    /// Ends the work that this operation represents, because a cancellation has reached `core`, which has no source and
    /// holds the operation in its payload. Called on the core's loop.
    /// - Returns: true if it has ended the work, and dropped the operation unless that is trivial; false if the work
    ///   continues and the core stays pending.
    static func stop(_ core: PromiseCore) -> Bool

    /// Continues this operation, in the payload of `core`, after the awaited input has arrived, or when it will not
    /// come. Called on the core's loop. Consumes a reference to the core.
    static func inputDidArrive(_ core: PromiseCore)
}

extension Operation where Self: ~Copyable {
    @inlinable @inline(__always)
    package static func stop(_ core: PromiseCore) -> Bool { false }

    @inlinable @inline(__always)
    package static func inputDidArrive(_ core: PromiseCore) {}
}

/// A core that has settled, as an operation sees it.
@usableFromInline
package struct Source<Value> {
    // Not counted: the code that runs the operation holds the core.
    @usableFromInline package let reference: CoreRef
    @usableFromInline package let isFulfilled: Bool

    @inlinable @inline(__always)
    init(_ reference: CoreRef, isFulfilled: Bool) {
        self.reference = reference
        self.isFulfilled = isFulfilled
    }

    @inlinable
    package var core: PromiseCore { reference.object }

    /// Only if fulfilled.
    @inlinable @inline(__always)
    var value: Value { reference.payload.value(as: Value.self) }

    /// Returns the value: moved out if this node has the only reference to the source, otherwise copied. So an array
    /// that is moved to a handler is not shared with the promise. Only if fulfilled, and only as the last use of the
    /// source.
    @inlinable @inline(__always)
    func takeValue() -> Value {
        _isPOD(Value.self) ? value : reference.borrow { $0.takeOrCopy(Value.self) }
    }

    /// Only if rejected.
    @inlinable @inline(__always)
    package var error: any Error { reference.payload.error }

    /// The call site of the promise that was rejected first, if known. Only if rejected.
    @usableFromInline
    var callSite: CallSite? { reference.payload.callSite }

    @inlinable
    var result: Result<Value, any Error> { isFulfilled ? .success(value) : .failure(error) }

    /// This source, whose value the caller knows to be an `Other`.
    @inlinable @inline(__always)
    func of<Other>(_ type: Other.Type) -> Source<Other> { Source<Other>(reference, isFulfilled: isFulfilled) }
}

/// The source of an operation that does not read the value and need not know its type; the operation's `Input` is
/// `Never`.
@usableFromInline package typealias AnySource = Source<Never>

extension PromiseCore {
    @inlinable
    package static func perform<Op: Operation & ~Copyable>(_ type: Op.Type, _ core: PromiseCore, _ phase: CorePhase) {
        switch phase {
        case .run:
            let word = core.sourceWord.loadRelaxed()
            let source = word.core
            let operation = core.payload.take(Op.self)
            core.sourceWord.store(.taken)
            operation.run(Source(source, isFulfilled: word.isFulfilled), core)
            source.releaseOrKeep()
        case .drop:
            _ = core.payload.take(Op.self)
        case .destroy:
            _ = core.payload.take(Op.Output.self)
        case .stop:
            if Op.stop(core) { core.sourceWord.store(.taken) }
        case .input:
            Op.inputDidArrive(core)
        }
    }

    /// Returns the value of a fulfilled promise: moved out if the caller's reference is the only one, since nobody can
    /// then read it again; otherwise copied.
    @inlinable @inline(__always)
    final func takeOrCopy<Value>(_ type: Value.Type) -> Value {
        guard isReferencedOnce else { return payload.value(as: Value.self) }
        // Nothing is left for the deinit to destroy.
        state.store(.fulfilled(isTrivial: true))
        return payload.take(Value.self)
    }
}

/// Settles as its source did. Cores without an operation use its code too: it is empty, and knows the value's type.
@usableFromInline
struct Follow<Value>: Operation {
    @usableFromInline typealias Output = Value

    @inlinable init() {}

    @inlinable @inline(__always)
    func run(_ source: Source<Value>, _ core: PromiseCore) { core.finish(as: source) }
}

/// Calls a closure once its source has settled.
@usableFromInline
struct Notification: Operation {
    @usableFromInline let body: (AnySource) -> Void

    @inlinable init(_ body: @escaping (AnySource) -> Void) { self.body = body }

    @inlinable
    func run(_ source: AnySource, _ core: PromiseCore) {
        body(source)
        core.finish(())
    }
}

extension CoreCode {
    /// The code that performs an operation of that type from the core's payload.
    @inlinable @inline(__always)
    package static func of<Op: Operation>(_ type: Op.Type) -> CoreCode {
        // The compiler makes a function for a type that it knows. In unspecialised generic code the closure would
        // capture the type.
        _isConcrete(type) ? CoreCode { PromiseCore.perform(Op.self, $0, $1) } : ofGeneric(type)
    }

    @usableFromInline @inline(never)
    static func ofGeneric<Op: Operation>(_ type: Op.Type) -> CoreCode {
        CoreCode(generic: OperationCode<Op>.self)
    }
}

private final class OperationCode<Op: Operation>: GenericCode {
    override static func call(_ core: PromiseCore, _ phase: CorePhase) { PromiseCore.perform(Op.self, core, phase) }
}
