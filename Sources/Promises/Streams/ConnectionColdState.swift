import Reactor

extension Connection {
    /// The fields that few connections need, in an object that is made for the first of them: a connection without them
    /// has a pointer.
    final class ColdState {
        var failure: SystemError?
        /// The promise of a `shutdownWrite` that waits for the queue.
        var ending: PromiseCore?
        var closing: PromiseCore?
        /// The promise of `closed`.
        var closed: PromiseCore?
        /// The listener that serves the connection, or the pool in which it is idle.
        var attachment: (any ConnectionAttachment)?
        /// How the connection ends, if that does not follow from `failure`, and how it has ended.
        var end: ConnectionEnd?
        var closingTimer: EventLoop.Timer?
        /// When a close is over, whatever the peer does.
        var closeDeadline: LoopInstant?
        /// Whether a close is over when the peer makes no progress.
        var checksCloseProgress = true
        /// What `closeProgress` was at the last check.
        var closeProgress = 0
        /// The number of bytes of input that a closing connection has discarded.
        var discarded = 0

        var idleTimeout: Duration?
        var idleTimer: EventLoop.Timer?
        /// Whether the idle time-out has been due once, and was postponed because the descriptor was ready.
        var seemsIdle = false

        var writeQueueLimit = Connection.defaultWriteQueueLimit
        var watermarks = Connection.defaultWatermarks
        /// The promise of `writable()`, which waits for the queue to sink.
        var writable: PromiseCore?

        /// What waits for the peer's end; see Connection+PeerGone.swift.
        var peerWatches = PeerWatches()
        /// Whether an option of the socket was set since a pool has looked; see ConnectionPool+Prepare.swift.
        var hasChangedOptions = false

        /// The bytes of fulfilled writes that leave with the next answers; see Connection+Gather.swift.
        var gathered: [UInt8] = []

        /// The filter, and the error with which it has failed; see Filters.
        var filter: InstalledFilter?
        var filterError: (any Error)?

        /// Bytes that were received and that no read has consumed.
        // Unchecked: each write and each chunk checks whether it is empty. `InputBuffer.consume` calls a decoder during
        // a change, and allows for a decoder that changes the buffer.
        @exclusivity(unchecked) var input = InputBuffer()
        /// How many loops over frames there are: more than one where the body of one has begun another.
        var frameLoops = 0
        /// Present with `frameTimeouts`.
        var frameClock: Connection.FrameClock?
        /// The frame that a read waits for, while the reader's demand is a frame.
        var pendingFrame: PendingFrame?
    }

    /// An incomplete frame.
    struct PendingFrame {
        /// The number of bytes that it needs at least.
        var missing: Int
        /// Decodes the input again, and returns what settles the promise; `nil` if the frame is still incomplete. The
        /// property is `nil` if the promise waits for the bytes alone: `forEachFrame` decodes them itself, so that its
        /// waits need no closures.
        let decode: ((_ connection: Connection, _ missing: inout Int) -> ((PromiseCore) -> Void)?)?
    }

    /// The limits of `frameTimeouts`, and the deadline of the read that waits.
    struct FrameClock {
        var limits: FrameTimeouts
        var timer: EventLoop.Timer?
        /// When the timer fires: never after the deadline, often before.
        var due = LoopInstant(nanoseconds: .max)
        var deadline: LoopInstant?
        /// The position in the input at which an incomplete frame begins, and the time at which its first bytes were
        /// found.
        var frame: (offset: Int, since: LoopInstant)?
        /// The position in the input, without skipped bytes, at which the last wait for a frame began, and the time of that.
        var idle: (offset: Int, since: LoopInstant)?
        /// The number of bytes that decoders have skipped.
        var skippedCount = 0
        /// Whether bytes were skipped since the last wait.
        var hasSkipped = false
        /// Whether the deadline has passed while the kernel had input, which is read first.
        var isLate = false
        /// The message that reads belong to; `nil` if each read is one of its own.
        var message: Message?
        /// Since when a read waits for a part of that message.
        var waitSince: LoopInstant?
        /// Whether `deadline` is that of the message.
        var limitsMessage = false

        struct Message {
            /// The position in the input at which it begins.
            let offset: Int
            /// How long reads have waited for it.
            var used = Duration.zero
            /// As `FrameClock.isLate`.
            var isLate = false
        }

        mutating func endWait(at now: LoopInstant) {
            if let waitSince = waitSince.take() { message?.used += waitSince.duration(to: now) }
        }

        init(_ limits: FrameTimeouts) { self.limits = limits }
    }
}
