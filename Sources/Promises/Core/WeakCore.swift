/// A weak reference to a core. Cores have no other weak references: the core that one of them leads to is marked, so that no
/// loop uses it again for another promise, to which the reference would then lead.
struct WeakCore {
    private(set) weak var core: PromiseCore?

    init(_ core: PromiseCore?) {
        core?.annotate(.isHeldWeakly)
        self.core = core
    }
}
