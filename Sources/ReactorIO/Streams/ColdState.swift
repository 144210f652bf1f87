import Promises
import Reactor

/// State that most connections never use; allocated on first use.
final class ColdState {
    /// State that even a server's connection rarely needs.
    private(set) var rare: RareState?
    var shutdown: PromiseCore?
    var close: ConnectionClose?
    var closed: PromiseCore?
    /// The listener that serves the connection, or the pool in which it is idle.
    // `@exclusivity(unchecked)`: see `Connection`.
    @exclusivity(unchecked) var attachment: ConnectionAttachment?
    var filter: InstalledFilter?
    var memory: MemoryShare?
    @exclusivity(unchecked) var frameClock: FrameClock?
    /// Updated while `Connection.notesActivity` is true.
    @exclusivity(unchecked) var lastActivity = LoopInstant(nanoseconds: 0)
    @exclusivity(unchecked) var peerWatches = PeerWatches()
    @exclusivity(unchecked) var hasChangedOptions = false
    // Unchecked, because each write and chunk tests it. `InputBuffer.consume` is safe even if a decoder changes the
    // buffer.
    @exclusivity(unchecked) var input = InputBuffer()

    var ensuredRareState: RareState {
        if let rare { return rare }
        let made = RareState()
        rare = made
        return made
    }

    var watchedEnds: Interest { attachment?.endsWithPeer == true ? .peerGone : peerWatches.ends }

    /// Called when a close begins, because it has its own limits, and when the descriptor is released, because its
    /// number may then belong to another connection. The caller changes the lifecycle first: the end of a pause
    /// registers the interest again unless the descriptor has been released.
    func endTimersAndPause(on loop: EventLoop) {
        close?.cancelTimer()
        rare?.idleClock?.cancelTimer()
        rare?.writeClock?.cancelTimer()
        rare?.readRateLimiter?.endPause()
        frameClock?.cancelTimer(on: loop)
        filter?.cancelTimer()
    }

    /// Called last, because it may release user objects; perhaps on another thread.
    /// - Parameter usual: the end to report if no other was recorded.
    func descriptorWasClosed(_ usual: ConnectionEnd) {
        memory.take()?.end()
        close.take()?.promise.fulfill(())
        let end = rare?.end ?? rare?.failure.map { .failed($0.error) } ?? usual
        // `Connection.closed` reports `.closed` if no end is recorded.
        if end != .closed { ensuredRareState.end = end }
        attachment?.connectionDidEnd(end)
        // Claimed first: on another thread, a cancellation may have locked the list of waiters.
        if let closed = closed.take(), closed.claim() { closed.fulfill(end) }
        filter.take()?.connectionDidEnd(rare?.failure?.error)
    }
}

final class RareState {
    var failure: ConnectionFailure?
    /// The recorded end; `nil` if it is `.closed` or follows from `failure`.
    var end: ConnectionEnd?
    var localAddress: SocketAddress?
    var idleClock: IdleTimer?
    var writeClock: IdleTimer?
    var readRateLimiter: ReadRateLimiter?
    var writeLimits = WriteLimits()
    /// The type of the last decoding error.
    var refusedInput: ObjectIdentifier?
    var deferred = DeferredAnswers()
}

/// A descriptor's first error. The kernel reports it once, and then only a normal end.
struct ConnectionFailure {
    let error: SystemError
    /// The error of a failed filter.
    var cause: (any Error)?

    var reported: any Error { cause ?? error }
}

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
    var writable: PromiseCore?
}
