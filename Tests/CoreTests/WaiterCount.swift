@testable import Promises

/// The number of nodes in the waiter list of a promise, including withdrawn ones.
func waiterCount<T>(of promise: Promise<T>) -> Int {
    promise.core.state.load().waiters?.list.reduce(0) { count, _ in count + 1 } ?? 0
}

/// A core, as long as others refer to it.
struct WeakCore {
    private(set) weak var core: PromiseCore?

    init(_ core: PromiseCore?) { self.core = core }
}
