import Reactor

// Making a core.

extension PromiseCore {
    /// Makes a pending core whose operation runs on this thread's loop.
    @inlinable @inline(__always)
    convenience init<Op: Operation>(_ operation: Op, role: CoreRole = []) {
        self.init(state: .pending, loop: .ofThisThread, role: role, code: .of(Op.self))
        payload.store(operation)
    }

    /// Makes a pending core whose operation runs inline, on the thread that settles its source.
    @inlinable @inline(__always)
    convenience init<Op: Operation>(inline operation: Op, role: CoreRole = []) {
        self.init(state: .pending, loop: nil, role: role, code: .of(Op.self))
        payload.store(operation)
    }

    /// Makes a pending core that its holder settles, on this thread, and may hand out several times.
    package convenience init<Value>(handedOut type: Value.Type) {
        self.init(state: .pending, loop: .ofThisThread, code: .of(Follow<Value>.self))
        annotate(.isHandedOutAgain)
    }

    /// Makes a pending core that any thread may settle.
    package convenience init<Value>(externallySettled type: Value.Type) {
        self.init(state: .pending, loop: .ofThisThread, role: .externallySettled, code: .of(Follow<Value>.self))
    }

    @inlinable
    package convenience init(error: any Error, at callSite: CallSite? = nil) {
        self.init(state: .rejected, loop: nil, code: .none)
        payload.storeError(error, at: callSite)
    }

    /// Makes a core without a role that takes over the operation or next step of `other`, whose payload must then be
    /// stored anew. If released before it runs, the new core drops the operation.
    convenience init(operationOf other: PromiseCore) {
        self.init(state: .pending, loop: other.loop, code: other.code)
        payload.move(from: other.payload)
        let nextStep = other.marks.intersection([.hasNextStep, .willBeRejected])
        marks = nextStep
        other.marks.subtract(nextStep)
    }

    // These reuse kept cores, if any.

    /// Makes a pending core of this thread's loop. The caller must store the operation.
    @inlinable @inline(__always)
    package static func pending(_ code: CoreCode, role: CoreRole = []) -> PromiseCore { makePendingCore(code, role) }

    /// Makes a fulfilled core. It never waits, so it belongs to no loop.
    @inlinable @inline(__always)
    package static func fulfilled<Value>(_ value: consuming Value) -> PromiseCore {
        let core = makeSettledCore(.fulfilled(isTrivial: CorePayload.isTrivial(Value.self)), .of(Follow<Value>.self))
        core.payload.store(value)
        return core
    }

    /// Makes a core whose operation runs once this core has settled.
    @inlinable
    package func derive<Op: Operation>(_ operation: consuming Op, role: CoreRole = []) -> PromiseCore {
        let child = PromiseCore.pending(.of(Op.self), role: role)
        child.payload.store(operation)
        attach(child)
        return child
    }
}
