import Promises
import Reactor

/// The limits of `frameTimeouts`, the deadline of the pending read, and its timer. Even an idle connection of a server
/// with limits has a clock, so it is small: sentinels instead of optionals, and nanoseconds of the loop's clock as
/// times.
final class FrameClock {
    private let shared: SharedLimits
    var limits: FrameTimeouts { shared.limits }
    /// The connection, while a read of a frame is pending. Not counted: the poller, or the loop during an event,
    /// retains the connection.
    private var waiting: UnownedReference<Connection>?
    /// The timer, and its time: never after the deadline, often earlier.
    private var timer = FrameClock.noTimer
    private var due = LoopInstant.distantFuture
    /// `distantFuture` without a deadline.
    private var deadline = LoopInstant.distantFuture
    /// The position in the input where an incomplete frame begins, after skipped bytes, and the time when the first
    /// byte, skipped or not, arrived. The time is `distantFuture` until the next wait.
    private var frame = (offset: FrameClock.nowhere, since: LoopInstant.distantFuture)
    /// The position in the input where the last wait for a frame began, plus bytes skipped since, and its time.
    private var gap = (offset: FrameClock.nowhere, since: LoopInstant.distantFuture)
    // Unchecked: no user code is called during an access, and each frame of a loop accesses it.
    @exclusivity(unchecked) private var message = Message()
    @exclusivity(unchecked) private var grace = Grace()
    /// True when `deadline` is the message's.
    private var limitsMessage = false
    /// The time since which a read waits; `distantFuture` without a read.
    private var waitSince = LoopInstant.distantFuture

    private struct Message {
        /// The position in the input where it begins; `nowhere` if each read is a separate message.
        var offset = FrameClock.nowhere
        /// The time that reads have waited for the message, in nanoseconds.
        var used: Int64 = 0
        /// True when bytes were skipped before the message, whose time then begins with them.
        var hasSkipped = false
        var grace = Grace()
    }

    /// A position before all positions in an input.
    private static var nowhere: Int { .min }
    private static var noTimer: UInt64 { .max }

    /// - Parameter clock: the clock that this one replaces, whose frame and message go on.
    init(_ limits: FrameTimeouts, of connection: Connection, continuing clock: FrameClock?) {
        shared = .of(connection, limits)
        guard let clock else { return }
        frame = clock.frame
        message = clock.message
    }

    // MARK: What happens to the input

    func beginMessage(of connection: Connection, unbuffered: Int = 0) {
        let offset = connection.deliveredByteCount - connection.bufferedByteCount - unbuffered
        if message.offset != offset { message = Message(offset: offset) }
    }

    /// Makes later reads separate messages. A pending read keeps its deadline.
    func endMessages() {
        message = Message()
        limitsMessage = false
    }

    /// Skips `count` bytes from `offset` on. They count for the frame and the message that follow; otherwise a peer
    /// could send such bytes for ever.
    func skip(_ count: Int, at offset: Int) {
        if frame.offset != offset { frame.since = .distantFuture }
        frame.offset = offset + count
        if gap.offset == offset { gap.offset += count }
        guard message.offset == offset else { return }
        message.offset += count
        message.hasSkipped = true
    }

    func endWait(at loop: EventLoop) {
        waiting = nil
        if waitSince != .distantFuture { addWait(until: loop.now) }
    }

    private func addWait(until now: LoopInstant) {
        if waitSince == .distantFuture { return }
        message.used += now.nanoseconds - waitSince.nanoseconds
        waitSince = .distantFuture
    }

    /// Excludes `time` from the pending read's limits: the connection is about to pause for its `readRate`, or the loop
    /// was delayed.
    func exclude(_ time: Duration) {
        frame.since = frame.since.advanced(by: time)
        gap.since = gap.since.advanced(by: time)
        waitSince = waitSince.advanced(by: time)
        deadline = deadline.advanced(by: time)
    }

    /// Computes the deadline of a read that begins to wait, or has received a part of its frame.
    func update(_ form: InputForm, of connection: Connection) {
        waiting = UnownedReference(connection)
        let (received, count, now) = (
            connection.deliveredByteCount, connection.bufferedByteCount, connection.loop.now
        )
        let offset = received - count
        addWait(until: now)
        deadline = .distantFuture
        // A frame is identified by its position in the stream, so all its waits count from its first byte.
        let isBegun = frame.offset == offset
        if !isBegun { grace = Grace() }
        if count == 0 {
            // Skipped bytes do not restart the idle time.
            if !isBegun || gap.offset != offset { gap = (offset, now) }
            limit(limits.idle, from: gap.since)
        }
        if count > 0 || isBegun {
            if !isBegun || frame.since == .distantFuture { frame = (offset, now) }
            limit(limits.grown(limits.frame, by: count), from: frame.since)
            if message.offset == Self.nowhere { limit(limits.grown(limits.message, by: count), from: frame.since) }
        } else {
            // A frame of the outer loop begins a message; a frame of a loop in its body does not.
            if form == .frames && connection.reader.loops < 2 { message = Message(offset: offset) }
            frame.offset = Self.nowhere
        }
        limitMessage(received, now)
        startTimer(for: connection)
    }

    private func limit(_ limit: Duration?, from start: LoopInstant) {
        if let limit, limit > .zero { deadline = min(deadline, start.advanced(by: limit)) }
    }

    private func limitMessage(_ received: Int, _ now: LoopInstant) {
        limitsMessage = false
        guard message.offset != Self.nowhere, received > message.offset || message.hasSkipped,
            let limit = limits.grown(limits.message, by: received - message.offset)
        else { return }
        waitSince = now
        let moment = now.advanced(by: limit - .nanoseconds(message.used))
        if deadline <= moment { return }
        deadline = moment
        limitsMessage = true
    }

    /// Returns the time since which `connection` waits for the next frame, if no byte of it has arrived; otherwise
    /// `nil`.
    func silence(of connection: Connection) -> LoopInstant? {
        let isAtGap = gap.offset == connection.deliveredByteCount && connection.bufferedByteCount == 0
        return waiting != nil && isAtGap ? gap.since : nil
    }

    // MARK: The timer

    /// Starts the timer, unless it already fires by the deadline and is then set anew.
    private func startTimer(for connection: Connection) {
        if deadline == .distantFuture || timer != Self.noTimer && due <= deadline { return }
        cancelTimer(on: connection.loop)
        due = deadline
        startTimer(at: deadline, on: connection.loop)
    }

    /// A background timer outlives the read and does not keep the loop alive, but the read does.
    private func startTimer(at moment: LoopInstant, on loop: EventLoop) {
        // Captures no reference to the connection: a weak one would make all others slower to count. A closure with one
        // captured object takes no block; `Self` would be a second capture.
        timer = loop.addBackgroundTimer(at: moment) { [self] in
            timer = FrameClock.noTimer
            // If no read waits, the next one starts the timer. `object` retains the connection until the end, because
            // the poller may retain it only for this read.
            if let connection = waiting?.object { timerFired(connection) }
        }
    }

    func cancelTimer(on loop: EventLoop) {
        // An ended loop has no timer, and other threads may release its connections.
        if timer != Self.noTimer && !loop.hasEnded { _ = loop.removeTimer(timer) }
        timer = Self.noTimer
    }

    private func timerFired(_ connection: Connection) {
        guard connection.lifecycle.isOpenOrFailed, connection.reader.isWaiting else { return }
        let late = deadline.duration(to: connection.loop.now)
        if late < .zero { return startTimer(for: connection) }
        let (most, isReady) = (limits.longest, { connection.isReadyInKernel })
        if let time = limitsMessage
            ? message.grace.time(lateBy: late, atMost: most, if: isReady())
            : grace.time(lateBy: late, atMost: most, if: isReady())
        {
            exclude(late + time)
            return startTimer(for: connection)
        }
        // A read that continues this frame gets the whole time again. Otherwise a handler that reads on after each
        // time-out would be called in every turn.
        frame.offset = Self.nowhere
        waitSince = .distantFuture
        message.used = 0
        let got = limitsMessage ? connection.deliveredByteCount - message.offset : connection.bufferedByteCount
        connection.rejectRead(StreamError.timedOut(got: got))
        connection.updateInterest()
    }
}

/// Usually the same for all connections of a loop, so that an idle one only takes a pointer.
private final class SharedLimits {
    let limits: FrameTimeouts

    private init(_ limits: FrameTimeouts) { self.limits = limits }

    /// Several limits, since a protocol may have different ones for its parts.
    private final class Latest {
        var limits: [SharedLimits] = []
        static var most: Int { 4 }
    }

    private static let ofLoops = LoopLocal { Latest() }

    static func of(_ connection: Connection, _ limits: FrameTimeouts) -> SharedLimits {
        let latest = ofLoops.value(for: connection)
        if let present = latest.limits.first(where: { $0.limits == limits }) { return present }
        let made = SharedLimits(limits)
        if latest.limits.count == Latest.most { latest.limits.removeFirst() }
        latest.limits.append(made)
        return made
    }
}
