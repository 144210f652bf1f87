import Reactor

extension Connection {
    /// The fields that few connections need: made with the first of them, so that the others cost a pointer.
    final class ColdState {
        var failure: SystemError?
        /// The promise of a `shutdownWrite` that waits for the queue.
        var ending: PromiseCore?
        var closing: PromiseCore?
        /// The promise of `closed`.
        var closed: PromiseCore?
        /// How the connection ends, if that does not follow from `failure`, and how it has ended.
        var end: ConnectionEnd?
        var closingTimer: EventLoop.Timer?
        /// When a close is over, whatever the peer does.
        var closeDeadline: LoopInstant?
        /// Whether a close is over when the peer makes no progress.
        var checksCloseProgress = true
        /// What `closeProgress` was at the last check.
        var closeProgress = 0
        /// Bytes of input that a closing connection has thrown away.
        var discarded = 0

        var idleTimeout: Duration?
        var idleTimer: EventLoop.Timer?
        /// The idle time-out was due once, and has been put off for what was ready then.
        var seemsIdle = false

        var writeQueueLimit = Connection.defaultWriteQueueLimit
        var watermarks = Connection.defaultWatermarks
        /// Who waits for the queue to sink.
        var writable: PromiseCore?

        /// Who is to be told that the peer has gone; see Connection+PeerGone.swift.
        var peerWatches: [Connection.PeerWatch] = []

        /// Bytes that were promised as written, and leave with the next answers; see Connection+Gather.swift.
        var gathered: [UInt8] = []

        /// What was read and nobody has been given yet.
        // Unchecked: asked about with every chunk, and never changed while anything is called that could come back.
        @exclusivity(unchecked) var input = InputBuffer()
        /// Present with `frameTimeouts`.
        var frameClock: Connection.FrameClock?
        /// The frame that a read waits for while the reader's demand is a frame.
        var pendingFrame: PendingFrame?
    }
}
