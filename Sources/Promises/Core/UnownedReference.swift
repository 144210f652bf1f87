/// A reference to an object, in the bits of a pointer, that is passed on without being counted.
///
/// Counting is an atomic operation, too expensive for each step of a chain. So lists of waiters, the words of a core
/// and a loop's queues pass their references on without counting them. Each `UnownedReference` field documents who owns
/// the counted reference, and until when.
@usableFromInline
package struct UnownedReference<Object: AnyObject>: Hashable {
    @usableFromInline let unmanaged: Unmanaged<Object>

    @inlinable @inline(__always)
    init(_ unmanaged: Unmanaged<Object>) { self.unmanaged = unmanaged }

    /// Refers to the object, which the caller or another party owns.
    @inlinable @inline(__always)
    package init(_ object: Object) { unmanaged = .passUnretained(object) }

    /// Counts a reference to the object; the holder must release it or pass it on.
    @inlinable @inline(__always)
    package static func retaining(_ object: consuming Object) -> UnownedReference {
        UnownedReference(.passRetained(object))
    }

    @inlinable @inline(__always)
    init(at pointer: UnsafeRawPointer) { unmanaged = .fromOpaque(pointer) }

    /// Refers to the object at `address`. Traps at zero.
    @inlinable @inline(__always)
    init(address: UInt) { self.init(at: UnsafeRawPointer(bitPattern: address)!) }

    /// Refers to the object at `address`; `nil` for zero.
    @inlinable @inline(__always)
    package init?(addressOrZero address: UInt) {
        guard let pointer = UnsafeRawPointer(bitPattern: address) else { return nil }
        self.init(at: pointer)
    }

    @inlinable @inline(__always)
    package var pointer: UnsafeMutableRawPointer { unmanaged.toOpaque() }

    @inlinable @inline(__always)
    package var address: UInt { UInt(bitPattern: pointer) }

    @inlinable @inline(__always)
    package static func == (one: UnownedReference, other: UnownedReference) -> Bool { one.pointer == other.pointer }

    @usableFromInline
    package func hash(into hasher: inout Hasher) { hasher.combine(pointer) }

    /// Passes the object to `body` without counting it. Another party must hold the object until `body` has returned.
    @inlinable @inline(__always)
    package func borrow<Result>(_ body: (Object) throws -> Result) rethrows -> Result {
        try unmanaged._withUnsafeGuaranteedRef(body)
    }

    /// The object, retained while the caller uses it.
    @inlinable @inline(__always)
    package var object: Object { unmanaged.takeUnretainedValue() }

    /// Returns the object with the counted reference that the caller owned.
    @inlinable @inline(__always)
    package func takeOver() -> Object { unmanaged.takeRetainedValue() }

    @inlinable @inline(__always)
    @discardableResult
    func retain() -> UnownedReference { UnownedReference(unmanaged.retain()) }

    @inlinable @inline(__always)
    package func release() { unmanaged.release() }
}
