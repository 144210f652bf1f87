/// A reference to an object that is passed on without being counted, in the bits of a pointer.
///
/// Counting a reference is an atomic operation, too expensive for a hop of a chain. So the lists of waiters, the words
/// of a core and the queues of a loop hold references whose count nobody changes while they are passed on. Each
/// `UnownedReference` field documents who owns the counted reference, and until when.
@usableFromInline
package struct UnownedReference<Object: AnyObject>: Hashable {
    @usableFromInline let unmanaged: Unmanaged<Object>

    @inlinable @inline(__always)
    init(_ unmanaged: Unmanaged<Object>) { self.unmanaged = unmanaged }

    /// Refers to the object, which the caller or another party owns.
    @inlinable @inline(__always)
    package init(_ object: Object) { unmanaged = .passUnretained(object) }

    /// Counts a reference to the object, which the holder must release or pass on.
    @inlinable @inline(__always)
    package static func retaining(_ object: consuming Object) -> UnownedReference {
        UnownedReference(.passRetained(object))
    }

    @inlinable @inline(__always)
    init(at pointer: UnsafeRawPointer) { unmanaged = .fromOpaque(pointer) }

    /// Refers to the object at `address`, which must be an object's. Traps at zero.
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

    /// Another party must hold the object until `body` has returned.
    @inlinable @inline(__always)
    package func borrow<Result>(_ body: (Object) throws -> Result) rethrows -> Result {
        try unmanaged._withUnsafeGuaranteedRef(body)
    }

    /// The object, counted while the caller uses it.
    @inlinable @inline(__always)
    package var object: Object { unmanaged.takeUnretainedValue() }

    /// The object, with the counted reference that the caller owned.
    @inlinable @inline(__always)
    package func takeOver() -> Object { unmanaged.takeRetainedValue() }

    @inlinable @inline(__always)
    @discardableResult
    func retain() -> UnownedReference { UnownedReference(unmanaged.retain()) }

    @inlinable @inline(__always)
    package func release() { unmanaged.release() }
}
