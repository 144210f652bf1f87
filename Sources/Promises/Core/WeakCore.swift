/// A weak reference to a core. Cores have no other weak references: the core is marked, so that no loop reuses it for
/// another promise, which the reference would then lead to.
struct WeakCore {
    private(set) weak var core: PromiseCore?

    init(_ core: PromiseCore?) {
        core?.annotate(.isHeldWeakly)
        self.core = core
    }
}
