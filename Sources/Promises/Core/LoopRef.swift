import CLinux
import Reactor

/// The loop of a core. Not owned: a loop does not end before the waiters that other threads may notify have been
/// withdrawn, or have arrived, and it exists as long as code runs on its thread.
@usableFromInline typealias LoopRef = Uncounted<EventLoop>

extension Uncounted where Object == EventLoop {
    /// The loop of this thread, made now if there is none.
    @inlinable @inline(__always)
    static var ofThisThread: LoopRef { LoopRef(at: EventLoop.addressOfThisThread) }

    /// The loop of this thread; `nil` if the thread has none, perhaps because it is ending.
    @inline(__always)
    static var ofThisThreadIfAny: LoopRef? { clinux_get_current_loop().map { LoopRef(at: $0) } }

    /// Posts a job from any thread, unless the loop has ended. `isThere` is called while the loop cannot end.
    func post(_ job: Job, ifStillThere isThere: () -> Bool) {
        EventLoop.post(job, toLoopAt: pointer, if: isThere)
    }

    /// Exchanges the object that the loop keeps for the layer above. The caller knows its class.
    func exchangeKept<Kept: AnyObject>(_ object: Uncounted<Kept>?) -> Uncounted<Kept>? {
        borrow { $0.exchangeAttachment(object.map { .fromOpaque($0.pointer) }) }.map {
            Uncounted<Kept>(at: $0.toOpaque())
        }
    }
}

extension Optional where Wrapped == LoopRef {
    /// Whether this is that loop: one comparison of addresses, where `==` of optionals checks for `nil` first.
    @inline(__always)
    func `is`(_ loop: LoopRef) -> Bool { UInt(bitPattern: self?.pointer) == loop.address }
}
