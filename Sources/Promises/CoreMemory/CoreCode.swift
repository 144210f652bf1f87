/// What a core does in each `CorePhase`, and its role: two constants in one word, which any thread may read.
///
///     bits 0 … 47     the address of a function without captures; or, if bit 63 is set, of the metadata of an `OperationCode`
///     bits 48 … 55    the role
///
/// Calling it retains nothing: functions and metadata are there for as long as the process.
// On Linux no address of a process is above bit 47, unless the process asks for that.
@usableFromInline
struct CoreCode {
    @usableFromInline let bits: UInt

    @inlinable @inline(__always)
    init(bits: UInt) { self.bits = bits }

    private static var genericBit: UInt { 1 << 63 }
    private static var roleShift: UInt { 48 }
    private static var addressMask: UInt { 1 << roleShift - 1 }

    /// Calls the function, which must have no captures.
    @inlinable @inline(__always)
    init(_ function: @escaping (PromiseCore, CorePhase) -> Void) {
        let words = unsafeBitCast(Closure(call: function), to: ClosureWords.self)
        precondition(words.captures == 0, "the code of a core captures something")
        self.init(bits: words.function)
    }

    /// Performs an operation of that type, which the payload of the core holds.
    @inlinable @inline(__always)
    static func of<Op: Operation>(_ type: Op.Type) -> CoreCode {
        // Where the compiler knows the type, it makes a function for it. In generic code that it has not specialised a closure
        // would capture the type.
        _isConcrete(type) ? CoreCode { PromiseCore.perform(Op.self, $0, $1) } : ofGeneric(type)
    }

    @usableFromInline @inline(never)
    static func ofGeneric<Op: Operation>(_ type: Op.Type) -> CoreCode {
        CoreCode(bits: unsafeBitCast(OperationCode<Op>.self as GenericCode.Type, to: UInt.self) | genericBit)
    }

    /// Does nothing: for a core that has no operation, and whose value needs no destruction.
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
            unsafeBitCast(ClosureWords(function: address, captures: 0), to: Closure.self).call(core, phase)
        }
    }

    // MARK: The role

    var role: CoreRole {
        @inline(__always) get { CoreRole(rawValue: UInt8(truncatingIfNeeded: bits >> Self.roleShift)) }
    }

    /// The same code, of a core with this role.
    @inline(__always)
    func with(_ role: CoreRole) -> CoreCode {
        CoreCode(bits: bits & (Self.addressMask | Self.genericBit) | UInt(role.rawValue) << Self.roleShift)
    }

    // MARK: Words

    // A closure is two words: its function, and the object with its captures or zero. In a struct, since a bare closure would
    // first be wrapped in another one.
    @usableFromInline
    struct Closure {
        @usableFromInline let call: (PromiseCore, CorePhase) -> Void

        @inlinable
        init(call: @escaping (PromiseCore, CorePhase) -> Void) { self.call = call }
    }

    @usableFromInline
    struct ClosureWords {
        @usableFromInline let function: UInt
        @usableFromInline let captures: UInt
    }
}

/// The code of a core whose type of operation is not known where the core is made. Has no instances.
private class GenericCode {
    class func call(_ core: PromiseCore, _ phase: CorePhase) { preconditionFailure("abstract") }
}

private final class OperationCode<Op: Operation>: GenericCode {
    override static func call(_ core: PromiseCore, _ phase: CorePhase) { PromiseCore.perform(Op.self, core, phase) }
}
