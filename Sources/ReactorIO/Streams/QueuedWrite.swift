import Promises

/// Stands for a queued write, as the operation of its promise.
// For the producer, see `Produced`.
struct QueuedWrite: Operation {
    typealias Input = Never
    typealias Output = Void
    unowned(unsafe) let producer: any CancellableWork
    /// The place in the queue.
    var number = 0

    func run(_ source: AnySource, _ core: PromiseCore) { preconditionFailure("a producer is no source") }

    static func stop(_ core: PromiseCore) -> Bool { core.queuedWrite.pointee.producer.stop(core) }
}

extension PromiseCore {
    static func ofWrite(by producer: any CancellableWork) -> PromiseCore {
        let core = PromiseCore.pending(.of(QueuedWrite.self))
        core.payload.store(QueuedWrite(producer: producer))
        return core
    }

    /// The operation of a pending write. (Of any other pending core it is meaningless, and may be read.)
    // Three words, so the payload itself. Valid until the core settles.
    var queuedWrite: UnsafeMutablePointer<QueuedWrite> { payload.pointer(to: QueuedWrite.self) }
}
