import Promises
import Reactor

extension Connection {
    /// The maximum number of bytes per second to receive. `nil`, the default, and values below one mean no limit.
    ///
    /// A peer that has sent less may catch up by at most one second's bytes at once. After that, the connection reads a
    /// tenth of a second's bytes at a time, with pauses in which the peer must wait. Bytes count before a filter.
    ///
    /// Pauses count neither for `idleTimeout` nor for a pending read's `frameTimeouts`. A reset is noticed at once, a
    /// normal end after the pause. The rest of the input is then read without pauses, like input that `close` discards.
    public var readRate: Int? {
        get { cold?.rare?.readRateLimiter?.rate }
        set {
            // A server without a rate sets `nil` on each connection, which must cost nothing.
            if newValue == nil && readRate == nil { return }
            loop.assertOwner()
            let old = cold?.rare?.readRateLimiter
            ensuredRareState.readRateLimiter = newValue.map { ReadRateLimiter($0, of: self, continuing: old) }
            updateNotesActivity()
            old?.endPause()
        }
    }

    /// `receiveOnce` for a connection with an `idleTimeout` or a `readRate`.
    @inline(never)
    func receiveTimed(into buffer: UnsafeMutableRawBufferPointer, atMost limit: Int) -> Int? {
        guard let limit = receiveLimit(limit) else { return nil }
        return didReceiveTimed(callReceive(into: buffer, atMost: limit))
    }

    private var readRateLimiter: ReadRateLimiter? { lifecycle.isOpenOrFailed ? cold?.rare?.readRateLimiter : nil }

    /// - Returns: the number of bytes to receive now, at most `limit`; `nil` in a pause, which this call begins.
    func receiveLimit(_ limit: Int) -> Int? {
        guard let pace = readRateLimiter, let allowed = pace.allowance(at: loop.now) else { return limit }
        if allowed > 0 { return min(limit, allowed) }
        pace.pause()
        return nil
    }

    /// `didReceive` for a connection with an `idleTimeout` or a `readRate`.
    func didReceiveTimed(_ result: Int) -> Int? {
        guard let count = didReceive(result) else { return nil }
        if count > 0 {
            noteActivity()
            readRateLimiter?.spend(count, at: loop.now)
        }
        return count
    }
}

/// Limits a connection's rate: its allowance is the bytes of one second, minus those that it has received.
final class ReadRateLimiter {
    let rate: Int
    // Weak, because the event loop may retain this object while another thread releases the connection.
    private weak var connection: Connection?
    /// The time from which the allowance is again the bytes of a whole second.
    private var full: LoopInstant
    private var timer: EventLoop.Timer?
    private var isUnlimited: Bool

    var isPaused: Bool { timer != nil }

    private static var second: Int { 1_000_000_000 }
    /// Fewer bytes are not worth a system call.
    private var leastBytes: Int { max(rate / 10, 1) }

    init(_ rate: Int, of connection: Connection, continuing pace: ReadRateLimiter?) {
        (self.rate, self.connection) = (rate, connection)
        // 8 GiB/s, faster than any connection, times a second in nanoseconds still fits an `Int`.
        isUnlimited = rate < 1 || rate > 1 << 33
        full = pace?.full ?? connection.loop.now
    }

    private func time(of count: Int) -> Int { (count * Self.second + rate - 1) / rate }

    /// - Returns: the number of bytes to receive now, zero in a pause; `nil` without a limit.
    func allowance(at now: LoopInstant) -> Int? {
        if isUnlimited { return nil }
        let owed = max(Int(full.nanoseconds - now.nanoseconds), 0)
        let count = max(Self.second - owed, 0) * rate / Self.second
        return count < leastBytes ? 0 : count
    }

    func spend(_ count: Int, at now: LoopInstant) {
        if !isUnlimited { full = max(full, now).advanced(by: .nanoseconds(time(of: count))) }
    }

    /// Begins a pause. Called again for each event of another operation in the pause.
    func pause() {
        guard let connection else { return }
        if timer == nil {
            let end = full.advanced(by: .nanoseconds(time(of: leastBytes) - Self.second))
            connection.cold?.frameClock?.exclude(connection.loop.now.duration(to: end))
            timer = connection.loop.schedule(at: end) { self.endPause() }
        }
        connection.pauseReading()
    }

    func endPause() {
        guard let timer = timer.take() else { return }
        timer.cancel()
        connection?.resumeReading()
    }

    /// Ends the limit at the peer's end, which the poller would report repeatedly.
    /// - Returns: true if there was a pause: arrived bytes are read before the end.
    func end() -> Bool {
        isUnlimited = true
        if timer == nil { return false }
        endPause()
        return connection?.pollsForInput == true
    }
}
