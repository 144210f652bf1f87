import Reactor

/// An object that settles promises when descriptors are ready, and can stop working for any one promise.
package protocol CancellableWork: AnyObject {
    /// Drops the cancelled `promise`, which is still unsettled.
    /// - Returns: false if the object cannot stop, or is not working for that promise.
    func stop(_ promise: PromiseCore) -> Bool
}

/// The operation of a promise that a producer settles; it stands for the producer's work.
// Unowned and unsafe: an owned or unowned reference would be counted for each read, and the payload is overwritten when
// the core settles. Sound because the producer settles the core before it is itself released, also when the loop ends.
// Settling, release and `stop` happen on the loop's thread.
@usableFromInline
struct Produced<Value>: Operation {
    @usableFromInline typealias Output = Value
    unowned(unsafe) let producer: any CancellableWork

    @usableFromInline
    func run(_ source: AnySource, _ core: PromiseCore) { preconditionFailure("a producer is no source") }

    @usableFromInline
    static func stop(_ core: PromiseCore) -> Bool { core.payload.pointer(to: Self.self).pointee.producer.stop(core) }
}

extension PromiseCore {
    /// Makes a pending core of this thread's loop that `producer` settles.
    @inline(__always)
    package static func pending<Value>(_ type: Value.Type, by producer: any CancellableWork) -> PromiseCore {
        let core = PromiseCore.pending(.of(Produced<Value>.self))
        core.payload.store(Produced<Value>(producer: producer))
        return core
    }
}
