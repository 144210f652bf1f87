// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Builtin
import ModelThreads

// The parts of `Synchronization` that the library uses, under the same names: its `import Synchronization` means this module. So
// its sources are compiled unchanged, and nothing of the model is in an ordinary build.

/// What an atomic of the library holds.
public protocol ModelWord {
    var word: UInt64 { get }
    init(word: UInt64)
}

extension ModelWord where Self: FixedWidthInteger {
    @inlinable public var word: UInt64 { UInt64(truncatingIfNeeded: self) }
    @inlinable public init(word: UInt64) { self = Self(truncatingIfNeeded: word) }
}

extension UInt: ModelWord {}
extension UInt8: ModelWord {}
extension UInt32: ModelWord {}
extension UInt64: ModelWord {}
extension Int: ModelWord {}
extension Int32: ModelWord {}
extension Int64: ModelWord {}

extension Bool: ModelWord {
    @inlinable public var word: UInt64 { self ? 1 : 0 }
    @inlinable public init(word: UInt64) { self = word & 1 != 0 }
}

/// Memory with one address for as long as it exists.
@frozen
@_rawLayout(like: Value, movesAsLike)
public struct Place<Value: ~Copyable>: ~Copyable {
    @_alwaysEmitIntoClient @_transparent
    public init(_ value: consuming Value) { address.initialize(to: value) }

    @_alwaysEmitIntoClient @_transparent
    public var address: UnsafeMutablePointer<Value> { UnsafeMutablePointer(Builtin.addressOfRawLayout(self)) }
}

/// Each operation is a step of the model.
@frozen
public struct Atomic<Value: ModelWord>: ~Copyable {
    public let place: Place<Value>

    @inlinable
    public init(_ value: consuming Value) { place = Place(value) }

    @inlinable @inline(__always)
    func perform(
        _ what: model_operator, _ operand: UInt64, expected: UInt64 = 0, order: CInt, failing: CInt = 0,
        _ name: StaticString,
        _ file: StaticString, _ line: UInt
    ) -> Value {
        Value(
            word: model_atomic(
                place.address, CInt(MemoryLayout<Value>.size), what, operand, expected, order, failing, name.text,
                file.text,
                UInt32(line)))
    }

    @inlinable @inline(__always)
    public func load(
        ordering: AtomicLoadOrdering, name: StaticString = #function, file: StaticString = #fileID, line: UInt = #line
    ) -> Value {
        perform(model_get, 0, order: ordering.rawValue, name, file, line)
    }

    @inlinable @inline(__always)
    public func store(
        _ value: consuming Value, ordering: AtomicStoreOrdering, name: StaticString = #function,
        file: StaticString = #fileID,
        line: UInt = #line
    ) {
        _ = perform(model_set, value.word, order: ordering.rawValue, name, file, line)
    }

    @inlinable @inline(__always)
    public func exchange(
        _ value: consuming Value, ordering: AtomicUpdateOrdering, name: StaticString = #function,
        file: StaticString = #fileID,
        line: UInt = #line
    ) -> Value {
        perform(model_swap, value.word, order: ordering.rawValue, name, file, line)
    }

    @inlinable @inline(__always)
    public func compareExchange(
        expected: consuming Value, desired: consuming Value, successOrdering: AtomicUpdateOrdering,
        failureOrdering: AtomicLoadOrdering,
        name: StaticString = #function, file: StaticString = #fileID, line: UInt = #line
    ) -> (exchanged: Bool, original: Value) {
        let wanted = expected.word
        let seen = perform(
            model_compare, desired.word, expected: wanted, order: successOrdering.rawValue,
            failing: failureOrdering.rawValue, name, file, line)
        return (seen.word == wanted, seen)
    }

    @inlinable @inline(__always)
    public func compareExchange(
        expected: consuming Value, desired: consuming Value, ordering: AtomicUpdateOrdering,
        name: StaticString = #function,
        file: StaticString = #fileID, line: UInt = #line
    ) -> (exchanged: Bool, original: Value) {
        compareExchange(
            expected: expected, desired: desired, successOrdering: ordering, failureOrdering: ordering.ofFailure,
            name: name,
            file: file, line: line)
    }

    /// It does not fail without a reason here.
    @inlinable @inline(__always)
    public func weakCompareExchange(
        expected: consuming Value, desired: consuming Value, successOrdering: AtomicUpdateOrdering,
        failureOrdering: AtomicLoadOrdering,
        name: StaticString = #function, file: StaticString = #fileID, line: UInt = #line
    ) -> (exchanged: Bool, original: Value) {
        compareExchange(
            expected: expected, desired: desired, successOrdering: successOrdering, failureOrdering: failureOrdering,
            name: name,
            file: file, line: line)
    }

    @inlinable @inline(__always)
    public func weakCompareExchange(
        expected: consuming Value, desired: consuming Value, ordering: AtomicUpdateOrdering,
        name: StaticString = #function,
        file: StaticString = #fileID, line: UInt = #line
    ) -> (exchanged: Bool, original: Value) {
        compareExchange(expected: expected, desired: desired, ordering: ordering, name: name, file: file, line: line)
    }
}

// As the one that it stands for.
extension Atomic: @unchecked Sendable {}

extension Atomic where Value: FixedWidthInteger {
    @discardableResult @inlinable @inline(__always)
    public func wrappingAdd(
        _ operand: Value, ordering: AtomicUpdateOrdering, name: StaticString = #function, file: StaticString = #fileID,
        line: UInt = #line
    ) -> (oldValue: Value, newValue: Value) {
        let old = perform(model_add, operand.word, order: ordering.rawValue, name, file, line)
        return (old, old &+ operand)
    }

    @discardableResult @inlinable @inline(__always)
    public func add(
        _ operand: Value, ordering: AtomicUpdateOrdering, name: StaticString = #function, file: StaticString = #fileID,
        line: UInt = #line
    ) -> (oldValue: Value, newValue: Value) {
        wrappingAdd(operand, ordering: ordering, name: name, file: file, line: line)
    }

    @discardableResult @inlinable @inline(__always)
    public func subtract(
        _ operand: Value, ordering: AtomicUpdateOrdering, name: StaticString = #function, file: StaticString = #fileID,
        line: UInt = #line
    ) -> (oldValue: Value, newValue: Value) {
        wrappingAdd(0 &- operand, ordering: ordering, name: name, file: file, line: line)
    }

    @discardableResult @inlinable @inline(__always)
    public func bitwiseOr(
        _ operand: Value, ordering: AtomicUpdateOrdering, name: StaticString = #function, file: StaticString = #fileID,
        line: UInt = #line
    ) -> (oldValue: Value, newValue: Value) {
        let old = perform(model_or, operand.word, order: ordering.rawValue, name, file, line)
        return (old, old | operand)
    }

    @discardableResult @inlinable @inline(__always)
    public func bitwiseAnd(
        _ operand: Value, ordering: AtomicUpdateOrdering, name: StaticString = #function, file: StaticString = #fileID,
        line: UInt = #line
    ) -> (oldValue: Value, newValue: Value) {
        let old = perform(model_and, operand.word, order: ordering.rawValue, name, file, line)
        return (old, old & operand)
    }

    @discardableResult @inlinable @inline(__always)
    public func max(
        _ operand: Value, ordering: AtomicUpdateOrdering, name: StaticString = #function, file: StaticString = #fileID,
        line: UInt = #line
    ) -> (oldValue: Value, newValue: Value) {
        let old = perform(model_maximum, operand.word, order: ordering.rawValue, name, file, line)
        return (old, Swift.max(old, operand))
    }
}

extension StaticString {
    @inlinable @inline(__always)
    var text: UnsafePointer<CChar> { UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self) }
}

// With the numbers of C11.

@frozen public enum AtomicLoadOrdering: CInt { case relaxed = 0, acquiring = 2, sequentiallyConsistent = 5 }
@frozen public enum AtomicStoreOrdering: CInt { case relaxed = 0, releasing = 3, sequentiallyConsistent = 5 }
@frozen public enum AtomicUpdateOrdering: CInt {
    case relaxed = 0, acquiring = 2, releasing, acquiringAndReleasing, sequentiallyConsistent

    /// Of a comparison that fails.
    @inlinable var ofFailure: AtomicLoadOrdering {
        switch self {
        case .relaxed, .releasing: .relaxed
        case .acquiring, .acquiringAndReleasing: .acquiring
        case .sequentiallyConsistent: .sequentiallyConsistent
        }
    }
}

@inlinable
public func atomicMemoryFence(ordering: AtomicUpdateOrdering) { model_fence(ordering.rawValue) }
