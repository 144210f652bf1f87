import Reactor

/// What few connections need, in an object that is made for the first of it: a connection without it has a pointer.
final class ColdState {
    var failure: ConnectionFailure?
    var ending = ConnectionEnding()
    /// The listener that serves the connection, or the pool in which it is idle.
    var attachment: (any ConnectionAttachment)?
    /// The filter.
    var layer: (any ConnectionLayer)?
    /// What waits for frames.
    var frames: (any FrameReading)?
    /// Present with `idleTimeout`.
    var idleClock: (any ConnectionPart)?
    /// When bytes were last received or sent, while `Connection.notesActivity` is set.
    @exclusivity(unchecked) var lastActivity = LoopInstant(nanoseconds: 0)
    var writeLimits = WriteLimits()
    /// What waits for the peer's end.
    var peerWatches = PeerWatches()
    /// Whether an option of the socket was set since a pool has looked.
    var hasChangedOptions = false
    /// Bytes that were received and that no read has consumed.
    // Unchecked: each write and each chunk checks whether it is empty. `InputBuffer.consume` calls a decoder during
    // a change, and allows for a decoder that changes the buffer.
    @exclusivity(unchecked) var input = InputBuffer()

    /// What the poller must report of the peer's end.
    var watchedEnds: Interest { attachment?.endsWithPeer == true ? .peerGone : peerWatches.ends }

    /// When a close begins, which sets a limit of its own, and when the descriptor is released: no timer may fire for a
    /// descriptor whose number another connection may have.
    func cancelTimers(on loop: EventLoop) {
        ending.close?.cancelTimer()
        idleClock?.cancelTimer()
        frames?.cancelTimer(on: loop)
        layer?.cancelTimer()
    }

    /// The descriptor has been released, perhaps on another thread. Called last, since it may release objects of the user's.
    /// - Parameter usual: the end that is reported if nothing else was recorded.
    func descriptorWasClosed(_ usual: ConnectionEnd) {
        ending.close.take()?.promise.fulfill(())
        settleClosed(usual)
        layer.take()?.connectionDidEnd(failure?.error)
    }

    /// Settles the promise of `closed`.
    func settleClosed(_ usual: ConnectionEnd) {
        let end = ending.end ?? failure.map { .failed($0.error) } ?? usual
        ending.end = end
        attachment?.connectionDidEnd(end)
        ending.closed.take()?.fulfill(end)
    }
}

/// The first error of a descriptor. The kernel reports it once and then pretends an orderly end.
struct ConnectionFailure {
    let error: SystemError
    /// The error of a filter, for promises that can be rejected with any error.
    var cause: (any Error)?

    var reported: any Error { cause ?? error }
}

/// The calls that end a connection, and how it ends.
struct ConnectionEnding {
    /// The promise of a `shutdownWrite` that waits for the queue.
    var shutdown: PromiseCore?
    var close: (any ConnectionClosing)?
    /// The promise of `closed`.
    var closed: PromiseCore?
    /// How the connection ends, if that does not follow from its failure, and how it has ended.
    var end: ConnectionEnd?
}

/// What a connection allows its queue of writes to become.
struct WriteLimits {
    static var defaultQueueLimit: Int { 4 << 20 }
    static var defaultWatermarks: (low: Int, high: Int) { (32 << 10, 64 << 10) }

    var queueLimit = defaultQueueLimit
    var watermarks = defaultWatermarks {
        didSet {
            let high = max(watermarks.high, 1)
            watermarks = (low: min(max(watermarks.low, 0), high - 1), high: high)
        }
    }
    /// The promise of `writable()`, which waits for the queue to sink.
    var writable: PromiseCore?
}
