import Reactor

/// An object that settles promises when descriptors of the loop are ready, and that can stop working for one of them.
protocol IOProducer: AnyObject {
    /// Drops `promise`, which it has not settled yet.
    /// - Returns: false if it cannot.
    func stop(_ promise: PromiseCore) -> Bool
}

/// A promise that is settled when a descriptor is ready.
// @unchecked: the producer is only used on the loop's thread.
class IOPromise: PromiseCore, @unchecked Sendable {
    // The producer settles this promise before it is released, also when the loop ends, and is not called afterwards.
    private unowned let producer: any IOProducer

    init<Value>(_ type: Value.Type, _ producer: any IOProducer) {
        self.producer = producer
        super.init(state: .pending, loop: .ofThisThread, code: .of(Follow<Value>.self))
    }

    override func cancelProducer() -> Bool { producer.stop(self) }
}

/// The producer of a core that is no `IOPromise`. It is in the payload, which is free until the core settles.
// Not owned, and unsafe: an owned or an unowned reference would be counted for each read. Sound because the mark
// `hasHeldProducer` is set only while the producer holds the core as its waiting one: the producer sets it when it
// begins to hold the core, and resets it, by `endProduction`, where it gives up that reference, in its deinit at the
// latest. All of that, and `cancelProducer`, happens on the loop's thread.
private struct HeldProducer {
    unowned(unsafe) let producer: any IOProducer
}

extension PromiseCore {
    /// Makes `producer`, which begins to hold this core, the one that a cancellation stops. The core is pending, has no
    /// operation, and belongs to this thread's loop.
    @inline(__always)
    final func beginProduction(by producer: any IOProducer) {
        payload.store(HeldProducer(producer: producer))
        marks.insert(.hasHeldProducer)
    }

    /// The producer gives up this core, to settle it, or because it was cancelled. Does nothing to other cores.
    @inline(__always)
    final func endProduction() { marks.remove(.hasHeldProducer) }

    /// Stops the producer, if the core has one in its payload. On its loop's thread.
    final func stopHeldProducer() -> Bool {
        guard marks.contains(.hasHeldProducer) else { return false }
        return payload.pointer(to: HeldProducer.self).pointee.producer.stop(self)
    }
}
