import Reactor

/// An object that settles promises when descriptors of the loop are ready, and that can stop working for one of them.
protocol IOProducer: AnyObject {
    /// Drops `promise`, which it has not settled yet.
    /// - Returns: false if it cannot.
    func stop(_ promise: PromiseCore) -> Bool
}

/// Represents the work of a producer.
// Not owned, and unsafe: an owned or an unowned reference would be counted, and the payload is overwritten when the
// core settles. Sound because the producer settles the core before it is released, also when the loop ends.
struct Produced<Value>: Operation {
    typealias Input = Never
    typealias Output = Value
    unowned(unsafe) let producer: any IOProducer

    func run(_ source: AnySource, _ core: PromiseCore) { preconditionFailure("a producer is no source") }

    static func stop(_ core: PromiseCore) -> Bool { core.payload.pointer(to: Self.self).pointee.producer.stop(core) }
}

extension PromiseCore {
    /// A pending core of this thread's loop that `producer` settles.
    convenience init<Value>(of type: Value.Type, by producer: any IOProducer) {
        self.init(Produced<Value>(producer: producer))
    }
}

/// The producer of a read, in the payload, which is free until the core settles.
// Not owned, and unsafe: an owned or an unowned reference would be counted for each read. Sound because the mark
// `hasHeldProducer` is set only while the producer holds the core as its waiting one: the producer sets it when it
// begins to hold the core, and resets it, by `endProduction`, where it gives up that reference, in its deinit at the
// latest. All of this, and `cancelProducer`, happens on the loop's thread.
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

    /// The producer releases this core, to settle it, or because it was cancelled. Does nothing for other cores.
    @inline(__always)
    final func endProduction() { marks.remove(.hasHeldProducer) }

    /// Stops the producer in the payload, if there is one. On its loop's thread.
    final func stopHeldProducer() -> Bool {
        guard marks.contains(.hasHeldProducer) else { return false }
        return payload.pointer(to: HeldProducer.self).pointee.producer.stop(self)
    }
}
