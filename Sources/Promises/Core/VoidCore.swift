import Synchronization

/// The process-wide core of promises fulfilled with nothing, such as a write that was sent at once.
private let voidCore = PromiseCore.fulfilled(())
/// The address of `voidCore` once made, which is never released. Accessing `voidCore` itself would call the runtime to
/// check that it has been made.
private let addressOfVoid = Atomic<UInt>(0)

extension PromiseCore {
    @usableFromInline package static var void: PromiseCore { voidRef.object }

    static var voidRef: CoreRef {
        CoreRef(addressOrZero: addressOfVoid.load(ordering: .acquiring)) ?? makeVoid()
    }

    @inline(never)
    private static func makeVoid() -> CoreRef {
        // A store suffices: the global owns the core, so no retain could move below the store.
        addressOfVoid.store(voidCore.address, ordering: .releasing)
        return voidCore.ref
    }
}
