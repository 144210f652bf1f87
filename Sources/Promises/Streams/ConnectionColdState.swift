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

    /// Who is to be told.
    struct PeerWatch {
        let core: PromiseCore
        /// Whether the core is to be cancelled, not fulfilled.
        let cancels: Bool
        let ignoringHalfClose: Bool
    }

    /// A frame that is not complete.
    struct PendingFrame {
        /// How many more bytes it needs at least.
        var missing: Int
        /// Decodes the input again, and returns what settles the promise; `nil` if the frame is still not complete. Without
        /// it the bytes alone are waited for: `forEachFrame` decodes them itself, and so makes no closures for each wait.
        let decode: ((_ connection: Connection, _ missing: inout Int) -> ((PromiseCore) -> Void)?)?
    }

    /// When the read of a frame that waits has taken too long.
    struct FrameClock {
        var limits: FrameTimeouts
        var timer: EventLoop.Timer?
        /// When the timer fires: never after the deadline, often before.
        var due = LoopInstant(nanoseconds: .max)
        var deadline: LoopInstant?
        /// Where in the input a frame has begun of which a part is here, and when that was seen.
        var frame: (offset: Int, since: LoopInstant)?
        /// The deadline has passed while the kernel had input, which is read first.
        var isLate = false

        init(_ limits: FrameTimeouts) { self.limits = limits }
    }
}
