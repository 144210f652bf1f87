import Synchronization

/// The process-wide core of promises fulfilled with nothing, such as a write that was sent at once.
private let voidCore = PromiseCore.fulfilled(())
/// The address of `voidCore` once made, never released. An access to `voidCore` itself would call the runtime to check
/// that.
private let addressOfVoid = Atomic<UInt>(0)

extension PromiseCore {
    @usableFromInline package static var void: PromiseCore { voidRef.object }

    static var voidRef: CoreRef {
        CoreRef(addressOrZero: addressOfVoid.load(ordering: .acquiring)) ?? makeVoid()
    }

    @inline(never)
    private static func makeVoid() -> CoreRef {
        // By a store: the static property owns it, so there is no retain that could move below.
        addressOfVoid.store(voidCore.address, ordering: .releasing)
        return voidCore.ref
    }
}
