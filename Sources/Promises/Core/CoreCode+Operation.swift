extension CoreCode {
    /// Performs an operation of that type, which the payload of the core holds.
    @inlinable @inline(__always)
    static func of<Op: Operation>(_ type: Op.Type) -> CoreCode {
        // Where the compiler knows the type, it makes a function for it. In generic code that it has not specialised a closure
        // would capture the type.
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
