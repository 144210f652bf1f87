import Glibc
import Reactor

extension Connection {
    /// Fails the connection with `ETIMEDOUT` when writes wait and the peer has taken nothing for this long: at the
    /// latest one and a half times as long after the kernel took the last byte. The peer's own bytes do not count, and
    /// a handler may work for any time. `nil`, the default, and values of zero or less mean no limit.
    ///
    /// The waiting writes fail with that error, and so do later reads and writes; the connection ends with a reset in
    /// TCP. `close` has its own limits.
    public var writeTimeout: Duration? {
        get { cold?.rare?.writeClock?.limit }
        set {
            loop.assertOwner()
            if newValue == nil && cold?.rare?.writeClock == nil { return }
            cold?.rare?.writeClock?.cancelTimer()
            ensuredRareState.writeClock = newValue.map { WriteClock($0, of: self) }
            if writer.isQueued { cold?.rare?.writeClock?.start() }
        }
    }
}

/// The clock of `writeTimeout`: its timer runs while writes wait, and checks twice in that time.
final class WriteClock {
    let limit: Duration
    // Weak: the loop may retain this while another thread releases the connection.
    private weak var connection: Connection?
    private var timer: EventLoop.Timer?
    /// The number of bytes that the kernel had taken at the last check.
    private var sent = 0
    /// Whether that was the same as at the check before.
    private var isStalled = false

    init(_ limit: Duration, of connection: Connection) {
        self.limit = limit
        self.connection = connection
    }

    func cancelTimer() { timer.take()?.cancel() }

    /// Starts when writes wait.
    func start() {
        guard timer == nil, limit > .zero, let connection else { return }
        note(connection, isStalled: false)
    }

    private func note(_ connection: Connection, isStalled: Bool) {
        self.isStalled = isStalled
        sent = connection.bytesSent
        timer = connection.loop.schedule(after: limit / 2) { self.timerFired() }
    }

    private func timerFired() {
        timer = nil
        guard let connection, connection.lifecycle == .open, connection.failure == nil, connection.writer.isQueued
        else { return }
        // After the loop was stalled, the kernel may have room that the loop has not seen.
        let hasRoom = connection.isReady(toRead: false, toWrite: true)
        if hasRoom || connection.bytesSent != sent { return note(connection, isStalled: false) }
        if !isStalled { return note(connection, isStalled: true) }
        connection.timeOut(
            SystemError(connection.writeCall, ETIMEDOUT, detail: "the peer has taken nothing for \(limit)"))
    }
}
