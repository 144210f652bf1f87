import Reactor

/// The limits of `frameTimeouts`, and the deadline of the read that waits. Its reader sets the timer.
final class FrameClock {
    private let shared: SharedLimits
    var limits: FrameTimeouts { shared.limits }
    var timer: EventLoop.Timer?
    /// The reader, while one of its reads waits. Not counted: the connection retains the reader, and while a read waits, the
    /// poller retains the connection, or during an event of the descriptor the loop.
    var waiting: Uncounted<FrameReader>?
    /// When the timer fires: never after the deadline, often before.
    private var due = LoopInstant(nanoseconds: .max)
    private(set) var deadline: LoopInstant?
    /// The position in the input at which an incomplete frame begins, and the time at which its first bytes were found.
    private var frame: (offset: Int, since: LoopInstant)?
    /// The position in the input, without skipped bytes, at which the last wait for a frame began, and the time of that.
    private var gap: (offset: Int, since: LoopInstant)?
    /// The number of bytes that decoders have skipped.
    private var skippedCount = 0
    /// Whether bytes were skipped since the last wait.
    private var hasSkipped = false
    /// Whether the deadline has passed while the kernel had input, which is read first.
    private var isLate = false
    /// The message that reads belong to; `nil` if each read is one of its own.
    // Unchecked: no user code is called during an access, and each frame of a loop makes one.
    @exclusivity(unchecked) var message: Message?
    /// Since when a read waits for a part of that message.
    private var waitSince: LoopInstant?
    /// Whether `deadline` is that of the message.
    private var limitsMessage = false

    struct Message {
        /// The position in the input at which it begins.
        let offset: Int
        /// How long reads have waited for it.
        var used = Duration.zero
        /// As `FrameClock.isLate`.
        var isLate = false
    }

    /// - Parameters:
    ///   - connection: the connection that reads.
    ///   - clock: the clock that this one replaces, with the frame that is under way.
    init(_ limits: FrameTimeouts, of connection: Connection, continuing clock: FrameClock?) {
        shared = .of(connection, limits)
        frame = clock?.frame
        message = clock?.message
    }

    // MARK: What happens to the input

    /// The next byte of `connection` that no read has consumed begins a message.
    func beginMessage(of connection: Connection) {
        let offset = connection.deliveredByteCount - connection.bufferedByteCount
        if message?.offset != offset { message = Message(offset: offset) }
    }

    func skip(_ count: Int) {
        skippedCount += count
        hasSkipped = true
    }

    /// A read of a frame no longer waits.
    func endWait(at loop: EventLoop) { if waitSince != nil { endWait(at: loop.now) } }

    private func endWait(at now: LoopInstant) {
        if let waitSince = waitSince.take() { message?.used += waitSince.duration(to: now) }
    }

    /// Computes the deadline of a read that waits.
    /// - Parameters:
    ///   - received: how many bytes have been received so far.
    ///   - count: how many of them are buffered.
    ///   - beginsMessage: whether the next byte begins a message.
    ///   - now: the time.
    func update(received: Int, buffered count: Int, beginsMessage: Bool, at now: LoopInstant) {
        var start = now
        var limit = limits.idle
        let offset = received - count
        endWait(at: now)
        if count == 0 {
            if beginsMessage { message = Message(offset: offset) }
            frame = nil
            // Bytes that were skipped do not begin the idle time anew: otherwise a peer could stay without any frame.
            let continues = hasSkipped && gap?.offset == offset - skippedCount
            if continues, let gap { start = gap.since } else { isLate = false }
            gap = (offset - skippedCount, start)
            hasSkipped = false
        } else {
            // A frame is identified by its position in the stream: the time of all its waits counts from its first
            // byte.
            if let frame, frame.offset == offset { start = frame.since } else { isLate = false }
            frame = (offset, start)
            limit = limits.grown(limits.frame, by: count)
            if message == nil, let own = limits.grown(limits.message, by: count) { limit = min(limit ?? own, own) }
        }
        deadline = nil
        if let limit, limit > .zero { deadline = start.advanced(by: limit) }
        limitMessage(received, now)
    }

    /// Applies the limit of a message that has begun.
    private func limitMessage(_ received: Int, _ now: LoopInstant) {
        limitsMessage = false
        guard let message, received > message.offset,
            let limit = limits.grown(limits.message, by: received - message.offset)
        else { return }
        waitSince = now
        let moment = now.advanced(by: limit - message.used)
        if let deadline, deadline <= moment { return }
        deadline = moment
        limitsMessage = true
    }

    // MARK: The timer

    /// - Returns: when a timer must be started; `nil` if the present one fires in time, or if there is no deadline.
    func momentToArm() -> LoopInstant? {
        guard let deadline else { return nil }
        if let timer {
            if due <= deadline { return nil }
            timer.cancel()
        }
        due = deadline
        return deadline
    }

    /// Whether a read whose deadline has passed may go on until it has what the kernel has for it. This is granted once per
    /// frame, or per message, so that further bytes do not prolong it.
    var mayPostpone: Bool { !(limitsMessage ? message?.isLate ?? true : isLate) }

    func postpone() {
        if limitsMessage { message?.isLate = true } else { isLate = true }
        if let deadline { due = deadline }
    }

    /// The read ends at its limit. One that continues this frame gets the whole time again: otherwise a handler that reads on
    /// after each time-out would be called in every turn.
    /// - Returns: the number of bytes of the message, if its limit was reached.
    func expire(received: Int) -> Int? {
        frame = nil
        waitSince = nil
        message?.used = .zero
        return limitsMessage ? received - (message?.offset ?? 0) : nil
    }
}

/// The limits of several connections of a loop, which usually are the same: an idle connection then takes a pointer for them.
private final class SharedLimits {
    let limits: FrameTimeouts

    private init(_ limits: FrameTimeouts) { self.limits = limits }

    private final class Latest {
        var limits: SharedLimits?
    }

    private static let ofLoops = LoopLocal { Latest() }

    static func of(_ connection: Connection, _ limits: FrameTimeouts) -> SharedLimits {
        let latest = ofLoops.value(for: connection)
        if let present = latest.limits, present.limits == limits { return present }
        let made = SharedLimits(limits)
        latest.limits = made
        return made
    }
}
