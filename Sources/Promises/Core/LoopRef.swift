import CLinux
import Reactor

/// The loop of a core, to which each core counts one reference. A loop that ends before its core refuses jobs, and no
/// other loop gets its address. See `EventLoop+References.swift`.
@usableFromInline typealias LoopRef = UnownedReference<EventLoop>

extension UnownedReference where Object == EventLoop {
    /// The loop of this thread, made on first use.
    @inlinable @inline(__always)
    static var ofThisThread: LoopRef { LoopRef(at: EventLoop.addressOfThisThread) }

    /// The loop of this thread; `nil` if the thread has none, perhaps because it is ending.
    @inline(__always)
    static var ofThisThreadIfAny: LoopRef? { clinux_get_current_loop().map { LoopRef(at: $0) } }

    @inline(__always)
    func coreDidBegin() {
        if isCurrent { borrow { $0.addOwnReference() } } else { EventLoop.addReference(to: unmanaged) }
    }

    @inline(__always)
    func coreDidEnd() {
        if isCurrent { borrow { $0.removeOwnReference() } } else { EventLoop.removeReference(to: unmanaged) }
    }

    /// True on the loop's own thread.
    @inline(__always)
    private var isCurrent: Bool { clinux_get_current_loop() == pointer }

    /// Exchanges the object that the loop keeps for the layer above. The caller knows its class.
    func exchangeKept<Kept: AnyObject>(_ object: UnownedReference<Kept>?) -> UnownedReference<Kept>? {
        borrow { $0.exchangeAttachment(object.map { .fromOpaque($0.pointer) }) }.map {
            UnownedReference<Kept>(at: $0.toOpaque())
        }
    }
}

extension Optional where Wrapped == LoopRef {
    /// Compares addresses, where `==` of optionals would check for `nil` first.
    @inline(__always)
    func `is`(_ loop: LoopRef) -> Bool { UInt(bitPattern: self?.pointer) == loop.address }
}
