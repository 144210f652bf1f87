import Glibc
import Synchronization

/// A reference to an object that does not retain it, and of which the object learns nothing until its `deinit`, on whatever
/// thread. A weak reference moves the counts of its object into a table, so that each reference that is counted afterwards costs
/// some 60 instructions more.
struct UntilReleased<Object: AnyObject>: ~Copyable {
    // The object's address; with the lowest bit while `borrow` has it; 0 from `end` on. `end` comes first in the object's
    // `deinit` and waits for `borrow`: until then the object is whole.
    private let word: Atomic<UInt>

    init(_ object: Object) { word = Atomic(Uncounted(object).address) }

    /// Calls `body` with the object unless it is being released. One thread calls this, and not inside itself.
    ///
    /// Another thread may be waiting in the object's `deinit`: `body` must be short, and run no code of the program. It may keep
    /// a reference to the object only if it finds out that someone else has one who does not release it meanwhile.
    func borrow<Result>(_ body: (Object) -> Result) -> Result? {
        let address = word.load(ordering: .relaxed)
        guard address != 0 else { return nil }
        let (isThere, _) = word.compareExchange(
            expected: address, desired: address | 1, ordering: .acquiringAndReleasing)
        guard isThere else { return nil }
        defer { word.store(address, ordering: .releasing) }
        return Uncounted(address: address).borrow(body)
    }

    /// The object is being released: called at the begin of its `deinit`.
    func end() {
        while true {
            let address = word.load(ordering: .relaxed) & ~1
            if word.compareExchange(expected: address, desired: 0, ordering: .acquiringAndReleasing).exchanged {
                return
            }
            sched_yield()
        }
    }
}
