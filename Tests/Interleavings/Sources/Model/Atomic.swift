// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Builtin
import ModelThreads

// The parts of `Synchronization` that the library uses, under the same names: its `import Synchronization` means this module. So
// its sources are compiled unchanged, and nothing of the model is in an ordinary build.

/// Each operation is a step of the model. All are inlined, so that the step is known by the code of the library.
@frozen
@_rawLayout(like: Value, movesAsLike)
public struct Atomic<Value: BitwiseCopyable>: ~Copyable {
    @_alwaysEmitIntoClient @_transparent
    public init(_ value: Value) { address.initialize(to: value) }

    @_alwaysEmitIntoClient @_transparent
    var address: UnsafeMutablePointer<Value> { UnsafeMutablePointer(Builtin.addressOfRawLayout(self)) }

    @inlinable @inline(__always)
    func perform(
        _ what: model_kind, _ operand: UInt64, _ order: AtomicOrdering, expected: UInt64 = 0,
        failing: AtomicOrdering = .relaxed
    ) -> Value {
        let size = CInt(MemoryLayout<Value>.size)
        return value(model_atomic(address, size, what, operand, expected, order.rawValue, failing.rawValue))
    }

    @inlinable @inline(__always)
    public func load(ordering: AtomicOrdering) -> Value { perform(model_load, 0, ordering) }

    @inlinable @inline(__always)
    public func store(_ value: Value, ordering: AtomicOrdering) { _ = perform(model_store, word(value), ordering) }

    @inlinable @inline(__always)
    public func exchange(_ value: Value, ordering: AtomicOrdering) -> Value {
        perform(model_exchange, word(value), ordering)
    }

    @inlinable @inline(__always)
    public func compareExchange(
        expected: Value, desired: Value, successOrdering: AtomicOrdering, failureOrdering: AtomicOrdering
    ) -> (exchanged: Bool, original: Value) {
        let (wanted, new) = (word(expected), word(desired))
        let seen = perform(model_compare, new, successOrdering, expected: wanted, failing: failureOrdering)
        return (word(seen) == wanted, seen)
    }

    @inlinable @inline(__always)
    public func compareExchange(
        expected: Value, desired: Value, ordering: AtomicOrdering
    ) -> (exchanged: Bool, original: Value) {
        compareExchange(
            expected: expected, desired: desired, successOrdering: ordering, failureOrdering: ordering.ofFailure)
    }

    // These do not fail without a reason here.

    @inlinable @inline(__always)
    public func weakCompareExchange(
        expected: Value, desired: Value, successOrdering: AtomicOrdering, failureOrdering: AtomicOrdering
    ) -> (exchanged: Bool, original: Value) {
        compareExchange(
            expected: expected, desired: desired, successOrdering: successOrdering, failureOrdering: failureOrdering)
    }

    @inlinable @inline(__always)
    public func weakCompareExchange(
        expected: Value, desired: Value, ordering: AtomicOrdering
    ) -> (exchanged: Bool, original: Value) {
        compareExchange(expected: expected, desired: desired, ordering: ordering)
    }
}

// As the one that it stands for.
extension Atomic: @unchecked Sendable {}

extension Atomic where Value: FixedWidthInteger {
    @discardableResult @inlinable @inline(__always)
    public func wrappingAdd(_ operand: Value, ordering: AtomicOrdering) -> (oldValue: Value, newValue: Value) {
        let old = perform(model_add, word(operand), ordering)
        return (old, old &+ operand)
    }

    @discardableResult @inlinable @inline(__always)
    public func add(_ operand: Value, ordering: AtomicOrdering) -> (oldValue: Value, newValue: Value) {
        wrappingAdd(operand, ordering: ordering)
    }

    @discardableResult @inlinable @inline(__always)
    public func subtract(_ operand: Value, ordering: AtomicOrdering) -> (oldValue: Value, newValue: Value) {
        wrappingAdd(0 &- operand, ordering: ordering)
    }

    @discardableResult @inlinable @inline(__always)
    public func bitwiseOr(_ operand: Value, ordering: AtomicOrdering) -> (oldValue: Value, newValue: Value) {
        let old = perform(model_or, word(operand), ordering)
        return (old, old | operand)
    }

    @discardableResult @inlinable @inline(__always)
    public func bitwiseAnd(_ operand: Value, ordering: AtomicOrdering) -> (oldValue: Value, newValue: Value) {
        let old = perform(model_and, word(operand), ordering)
        return (old, old & operand)
    }
}

@inlinable @inline(__always)
func word<Value: BitwiseCopyable>(_ value: Value) -> UInt64 {
    var word: UInt64 = 0
    withUnsafeMutableBytes(of: &word) { $0.storeBytes(of: value, as: Value.self) }
    return word
}

@inlinable @inline(__always)
func value<Value: BitwiseCopyable>(_ word: UInt64) -> Value {
    withUnsafeBytes(of: word) { $0.load(as: Value.self) }
}

/// With the numbers of C11.
@frozen
public enum AtomicOrdering: CInt {
    case relaxed = 0, acquiring = 2, releasing, acquiringAndReleasing, sequentiallyConsistent

    /// Of a comparison that fails.
    @inlinable var ofFailure: Self {
        self == .releasing ? .relaxed : self == .acquiringAndReleasing ? .acquiring : self
    }
}

@inlinable
public func atomicMemoryFence(ordering: AtomicOrdering) { model_fence(ordering.rawValue) }
