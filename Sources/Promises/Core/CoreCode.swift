/// A core's code for each `CorePhase`, and its role: two constants in one word, which any thread may read.
///
///     bits 0 … 47     the address of a function without captures, or, with bit 63, of a `GenericCode`'s metadata
///     bits 48 … 62    the role
///
/// Calling it retains nothing, because functions and metadata are never freed.
// On Linux no address has a bit above 47 set, unless the process asks for higher addresses or for tags.
@usableFromInline
package struct CoreCode {
    @usableFromInline let bits: UInt

    @inlinable @inline(__always)
    init(bits: UInt) { self.bits = bits }

    private static var genericBit: UInt { 1 << 63 }
    private static var roleShift: UInt { 48 }
    private static var addressMask: UInt { 1 << roleShift - 1 }

    /// Wraps the function, which must have no captures.
    @inlinable @inline(__always)
    package init(_ function: @escaping (PromiseCore, CorePhase) -> Void) {
        let (function, captures) = unsafeBitCast(Closure(call: function), to: (UInt, UInt).self)
        precondition(captures == 0, "the code of a core captures something")
        self.init(bits: function)
    }

    init(generic code: GenericCode.Type) {
        let address = unsafeBitCast(code, to: UInt.self)
        // Unlike a function, metadata is on the heap, whose addresses ARM64 can tag in bits 56 to 59.
        if address > Self.addressMask { fatalError("promises need a heap without tags: glibc.mem.tagging=0") }
        self.init(bits: address | Self.genericBit)
    }

    /// The code for a core that has no operation, and whose value needs no destruction.
    @inlinable
    static var none: CoreCode {
        @inline(__always) get { CoreCode { _, _ in } }
    }

    @inline(__always)
    func callAsFunction(_ core: PromiseCore, _ phase: CorePhase) {
        let address = bits & Self.addressMask
        if bits & Self.genericBit != 0 {
            unsafeBitCast(address, to: GenericCode.Type.self).call(core, phase)
        } else {
            unsafeBitCast((address, 0 as UInt), to: Closure.self).call(core, phase)
        }
    }

    // MARK: The role

    var role: CoreRole {
        @inline(__always) get {
            CoreRole(rawValue: UInt16(truncatingIfNeeded: (bits & ~Self.genericBit) >> Self.roleShift))
        }
    }

    @inline(__always)
    func with(_ role: CoreRole) -> CoreCode {
        assert(role.rawValue < 1 << 15)
        return CoreCode(bits: bits & (Self.addressMask | Self.genericBit) | UInt(role.rawValue) << Self.roleShift)
    }

    // MARK: Words

    // A closure is two words: its function, and the object that holds its captures, or zero. This struct wraps the
    // closure, because a bare one would be wrapped in another closure.
    @usableFromInline
    struct Closure {
        @usableFromInline let call: (PromiseCore, CorePhase) -> Void

        @inlinable
        init(call: @escaping (PromiseCore, CorePhase) -> Void) { self.call = call }
    }
}

/// The code of a core whose operation type only subclasses know.
class GenericCode {
    class func call(_ core: PromiseCore, _ phase: CorePhase) { preconditionFailure("abstract") }
}
