import Synchronization

/// The core of promises that are fulfilled with nothing, such as a write that was sent at once: one for the process.
private enum VoidCore {
    static let core = PromiseCore(value: ())
    /// The address of `core` once that has been made; never released. An access to `core` itself calls the runtime to find out.
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
