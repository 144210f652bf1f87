import Reactor

// The ends of an operation. (`wait` and `enqueueAgain` make it wait.) Each of these calls consumes the running reference
// to the core.

extension PromiseCore {
    /// True while an operation's outcome counts: until its promise is cancelled, perhaps while the operation runs.
    @inlinable @inline(__always)
    package var isOpen: Bool { state.loadRelaxed().isOpen }

    @inlinable @inline(__always)
    package func finish<Value>(_ value: consuming Value) {
        guard isOpen else { return release() }
        payload.store(value)
        settleAndRelease(.fulfilled(isTrivial: CorePayload.isTrivial(Value.self)))
    }

    /// Rejects this core.
    /// - Parameter callSite: the call site of the promise that was rejected first, if known.
    @usableFromInline
    package func finish(throwing error: any Error, at callSite: CallSite? = nil) {
        guard isOpen else { return release() }
        payload.storeError(error, at: callSite)
        settleAndRelease(.rejected)
    }

    /// Rejects this core with the error and call site of `source`.
    @usableFromInline
    package func finish(rejectedAs source: CoreRef) {
        guard isOpen else { return release() }
        payload.copyError(from: source.payload)
        settleAndRelease(.rejected)
    }

    @inlinable @inline(__always)
    func finish<Value>(as source: Source<Value>) {
        if source.isFulfilled { finish(source.value) } else { finish(rejectedAs: source.reference) }
    }

    /// Settles this core as `inner` settles. Consumes a reference to `inner`.
    @inlinable @inline(__always)
    func finish<Value>(followingOwned inner: CoreRef, as type: Value.Type) {
        // Nothing to wait for. Taking the value here, where the type is known, saves three indirect calls.
        if inner.borrow({ $0.state.load().isFulfilled }) {
            let source = Source<Value>(inner, isFulfilled: true)
            // Usually the shared promise of Void.
            if Value.self == Void.self {
                finish(source.value)
                return inner.release()
            }
            finish(source.takeValue())
            return inner.releaseOrKeep()
        }
        follow(owned: inner) { PromiseCore.perform(Follow<Value>.self, $0, .run) }
    }
}

extension CoreRef {
    /// Settles the core, if its outcome still counts. Consumes a reference to it.
    @inlinable @inline(__always)
    package func finish<Value>(_ value: consuming Value) {
        guard borrow({ $0.isOpen }) else { return release() }
        payload.store(value)
        borrow { $0.settleAndRelease(.fulfilled(isTrivial: CorePayload.isTrivial(Value.self))) }
    }
}
