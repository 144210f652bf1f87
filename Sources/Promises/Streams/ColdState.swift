import Reactor

/// State that most connections never use; allocated on first use. A connection without it has only a pointer.
final class ColdState {
    /// State that a server's connection never needs either, unless something fails.
    private var rare: RareState?
    /// The promise of a `shutdownWrite` that waits for the queue.
    var shutdown: PromiseCore?
    var close: ConnectionClose?
    /// The promise of `closed`.
    var closed: PromiseCore?
    /// The listener that serves the connection, or the pool in which it is idle.
    var attachment: (any ConnectionAttachment)?
    /// The filter.
    var layer: (any ConnectionLayer)?
    /// Its share of a memory budget, if it has one.
    var memory: MemoryShare?
    /// Set with `frameTimeouts`.
    @exclusivity(unchecked) var frameClock: FrameClock?
    /// When bytes were last received or sent, while `Connection.notesActivity` is set.
    @exclusivity(unchecked) var lastActivity = LoopInstant(nanoseconds: 0)
    /// The watches of the peer's end.
    var peerWatches = PeerWatches()
    /// Whether a socket option was set since a pool last checked.
    var hasChangedOptions = false
    /// Received bytes that no read has consumed.
    // Unchecked: each write and each chunk checks whether it is empty. `InputBuffer.consume` calls a decoder during
    // a change, and allows for a decoder that changes the buffer.
    @exclusivity(unchecked) var input = InputBuffer()

    /// The events of the peer's end that the poller must report.
    var watchedEnds: Interest { attachment?.endsWithPeer == true ? .peerGone : peerWatches.ends }

    /// Called when a close begins, which has its own limit, and when the descriptor is released: no timer may fire for
    /// a descriptor whose number another connection may have.
    func cancelTimers(on loop: EventLoop) {
        close?.cancelTimer()
        idleClock?.cancelTimer()
        writeClock?.cancelTimer()
        readPace?.cancelTimer()
        frameClock?.cancelTimer(on: loop)
        layer?.cancelTimer()
    }

    /// The descriptor has been released, perhaps on another thread. Called last, since it may release user objects.
    /// - Parameter usual: the end that is reported if nothing else was recorded.
    func descriptorWasClosed(_ usual: ConnectionEnd) {
        memory.take()?.end()
        close.take()?.promise.fulfill(())
        settleClosed(usual)
        layer.take()?.connectionDidEnd(failure?.error)
    }

    /// Settles the promise of `closed`.
    func settleClosed(_ usual: ConnectionEnd) {
        let end = end ?? failure.map { .failed($0.error) } ?? usual
        // `closed` treats a connection without an end as closed.
        if end != .closed { self.end = end }
        attachment?.connectionDidEnd(end)
        closed.take()?.fulfill(end)
    }
}

extension ColdState {
    private final class RareState {
        var failure: ConnectionFailure?
        var end: ConnectionEnd?
        var localAddress: SocketAddress?
        var idleClock: (any ConnectionPart)?
        var writeClock: WriteClock?
        var readPace: ReadPace?
        var writeLimits = WriteLimits()
    }

    private var ensuredRareState: RareState {
        if let rare { return rare }
        let made = RareState()
        rare = made
        return made
    }

    var hasRareState: Bool { rare != nil }

    var failure: ConnectionFailure? {
        get { rare?.failure }
        set { ensuredRareState.failure = newValue }
    }

    /// How the connection ends, unless that follows from its failure, and how it has ended.
    var end: ConnectionEnd? {
        get { rare?.end }
        set { ensuredRareState.end = newValue }
    }

    /// Cached once it has been read.
    var localAddress: SocketAddress? {
        get { rare?.localAddress }
        set { ensuredRareState.localAddress = newValue }
    }

    /// Set with `idleTimeout`.
    var idleClock: (any ConnectionPart)? {
        get { rare?.idleClock }
        set { if newValue != nil || rare != nil { ensuredRareState.idleClock = newValue } }
    }

    /// Present with `writeTimeout`.
    var writeClock: WriteClock? {
        get { rare?.writeClock }
        set { if newValue != nil || rare != nil { ensuredRareState.writeClock = newValue } }
    }

    /// Present with `readRate`.
    var readPace: ReadPace? {
        get { rare?.readPace }
        set { if newValue != nil || rare != nil { ensuredRareState.readPace = newValue } }
    }

    /// The limit in `writeLimits`. Each write reads it alone: a copy of the other fields would be counted.
    var writeQueueLimit: Int? { rare?.writeLimits.queueLimit }

    /// `nil` for the defaults that every connection starts with.
    var writeLimits: WriteLimits? {
        get { rare?.writeLimits }
        set { ensuredRareState.writeLimits = newValue ?? WriteLimits() }
    }
}

/// The first error of a descriptor. The kernel reports it once and then pretends an orderly end.
struct ConnectionFailure {
    let error: SystemError
    /// The error of a filter, for promises that can be rejected with any error.
    var cause: (any Error)?

    var reported: any Error { cause ?? error }
}

/// The limits of a connection's write queue.
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
    /// The promise of `writable()`, which waits for the queue to drain.
    var writable: PromiseCore?
}
