import Promises

/// The operation of a queued write's promise.
// For the unsafe reference, see `Produced`.
struct QueuedWrite: Operation {
    typealias Input = Never
    typealias Output = Void
    unowned(unsafe) let producer: any CancellableWork
    /// The number of the write's last entry.
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

    /// The operation of a pending write. (For other pending cores it is meaningless, but may be read.)
    // Its three words are stored in the payload itself. Valid until the core settles.
    var queuedWrite: UnsafeMutablePointer<QueuedWrite> { payload.pointer(to: QueuedWrite.self) }
}
