import Synchronization

/// The process-wide core of promises fulfilled with nothing, such as a write that was sent at once.
private enum VoidCore {
    static let core = PromiseCore(value: ())
    /// The address of `core` once it has been made; never released. An access to `core` itself would call the runtime
    /// to check that.
    static let address = Atomic<UInt>(0)

    @inline(never)
    static func make() -> CoreRef {
        let ref = CoreRef(core)
        address.store(ref.address, ordering: .releasing)
        return ref
    }
}

extension PromiseCore {
    @usableFromInline static var void: PromiseCore { voidRef.object }

    static var voidRef: CoreRef {
        CoreRef(addressOrZero: VoidCore.address.load(ordering: .acquiring)) ?? VoidCore.make()
    }
}
