import Promises
import Reactor

/// The close of a connection, from the call until the descriptor is closed. Its limits keep a peer that only
/// occasionally reads or sends from holding the descriptor.
@usableFromInline
final class ConnectionClose {
    // The connection retains this object, and cancels the timer before its descriptor is closed. Until then the poller,
    // or the flush job, retains the connection.
    private unowned let connection: Connection
    let promise = PromiseCore(handedOut: Void.self)
    /// The time at which the close ends in any case.
    private var deadline: LoopInstant?
    /// The minimum of bytes taken and sent by the peer per interval; `nil` for none.
    private var leastProgress: Int?
    private var lastProgress = 0
    private var timer: EventLoop.Timer?
    /// The time of the next check.
    private var due = LoopInstant.distantFuture
    private var grace = Grace()
    /// True when the peer has ended while its input was discarded.
    private(set) var inputHasEnded = false

    private init(_ connection: Connection) { self.connection = connection }

    /// Begins a close, or sets another time for one in progress.
    @usableFromInline
    static func start(_ lingerTime: Duration?, of connection: Connection) -> Guarantee<Void> {
        connection.loop.assertOwner()
        if connection.lifecycle.hasDescriptor && connection.loop.kernel.isForked {
            // The parent sends, ends and discards input. This process only closes its copy.
            connection.dropAndReset()
            return .value
        }
        connection.sendGathered()
        let before = connection.lifecycle.close()
        if !before.hasDescriptor { return .value }
        // The usual case of a server: the peer has ended and nothing is queued. It needs no object.
        if before == .open, connection.cold == nil, connection.path == .direct, connection.reader.hasEnded,
            !connection.writer.isQueued
        {
            lingerIfDelivered(connection)
            return .value
        }
        let cold = connection.ensuredColdState
        if let close = cold.close {
            if lingerTime != nil { close.limit(to: lingerTime) }
            return Guarantee(close.promise)
        }
        let close = ConnectionClose(connection)
        cold.close = close
        cold.attachment?.connectionWillClose()
        cold.endTimersAndPause(on: connection.loop)
        connection.cancelRead()
        // An inline handler of that read may have aborted the connection.
        if connection.lifecycle == .flushing {
            if before == .failed {
                connection.release()
            } else if connection.writer.isQueued {
                // A peer may take the queued bytes only after it has sent everything.
                if connection.path == .direct, connection.kind.contains(.socket) { connection.path = .discarding }
                connection.updateInterest()
            } else {
                lingerIfDelivered(connection)
            }
        }
        // An inline handler of that read may have set another time.
        if connection.lifecycle.hasDescriptor && close.timer == nil { close.limit(to: lingerTime) }
        return Guarantee(close.promise)
    }

    /// Ends the stream if a close was waiting for the queue to become empty.
    static func lingerIfDelivered(_ connection: Connection) {
        guard connection.lifecycle == .flushing else { return }
        // The kernel may not take a filter's end record, or the filter may need input first. Sending the record may
        // also re-enter and finish this function.
        guard connection.queueEndRecord(), !connection.writer.isQueued, connection.lifecycle.deliver()
        else { return connection.updateInterest() }
        connection.endWriter()
        connection.path = .discarding
        let hasEnded =
            connection.cold?.filter?.sourceHasEnded
            ?? (connection.reader.hasEnded || connection.cold?.close?.inputHasEnded == true)
        if hasEnded || !connection.kind.contains(.socket) {
            connection.release()
        } else {
            connection.cold?.close?.discardInput()
        }
    }

    func cancelTimer() { timer?.cancel() }

    /// Closes the connection if the peer has ended and nothing is queued.
    /// - Returns: true if there may be more input.
    @discardableResult
    func discardInput() -> Bool {
        let connection = connection
        guard connection.discardsInput else { return false }
        let count = connection.receiveOnce(into: connection.loop.scratch)
        if let count, count <= 0 {
            inputHasEnded = true
            let error = count < 0 ? SystemError(connection.readCall, CInt(-count)) : nil
            if connection.lifecycle == .lingering {
                if let error { connection.recordEnd(.failed(error)) }
                connection.release()
            } else if let error {
                connection.fail(error)
            }
        }
        connection.updateInterest()
        return count.map { $0 > 0 } ?? false
    }

    // MARK: Limits

    private static var timeLimit: Duration { .seconds(30) }
    private static var checkInterval: Duration { .seconds(5) }
    /// The minimum for the peer of a socket: 1 KiB a second.
    private static var leastProgress: Int { 5 << 10 }

    /// With a `lingerTime`, which counts from now, progress is not checked. Zero or less ends the close now.
    func limit(to lingerTime: Duration?) {
        timer?.cancel()
        if let lingerTime, lingerTime <= .zero { return end() }
        // The reader of a pipe or a terminal is a program on this machine, which may be slow as long as it makes
        // progress.
        let isSocket = connection.kind.contains(.socket)
        deadline = (lingerTime ?? (isSocket ? Self.timeLimit : nil)).map { connection.loop.now.advanced(by: $0) }
        leastProgress = lingerTime != nil ? nil : isSocket ? Self.leastProgress : 1
        scheduleCheck()
    }

    private func scheduleCheck() {
        lastProgress = progress
        grace = Grace()
        let check = leastProgress.map { _ in connection.loop.now.advanced(by: Self.checkInterval) }
        guard let moment = [check, deadline].compactMap(\.self).min() else { return }
        due = moment
        setTimer(at: moment)
    }

    private func setTimer(at moment: LoopInstant) { timer = connection.loop.schedule(at: moment) { self.check() } }

    private func check() {
        // Retained for this call, because the poller may retain the connection only for the close.
        let connection = connection
        defer { withExtendedLifetime(connection) {} }
        guard isLimitReached else { return scheduleCheck() }
        let now = connection.loop.now
        let late = due.duration(to: now)
        if let time = grace.time(lateBy: late, atMost: Self.checkInterval, if: connection.isReadyInKernel) {
            setTimer(at: now.advanced(by: time))
            // No event says so while epoll has no room for the descriptor.
            if connection.lifecycle == .flushing { connection.flush() }
            discardInput()
            return
        }
        end()
    }

    private var isLimitReached: Bool {
        if let deadline, deadline <= connection.loop.now { return true }
        return leastProgress.map { progress - lastProgress < $0 } ?? false
    }

    /// Ends the close at a limit. The kernel delivers what it has taken. Resets the peer only if written bytes are
    /// lost.
    private func end() {
        if connection.lifecycle == .flushing { connection.flush() }
        // With unread input the kernel would send a reset. Discards at most 1 MiB, 64 KiB at a time.
        for _ in 0..<16 where connection.lifecycle == .lingering {
            if !discardInput() { break }
        }
        if connection.lifecycle == .lingering { return connection.release() }
        connection.dropAndReset(atLimit: true)
    }

    /// The number of bytes that the peer has taken and sent. Bytes in the kernel's send queue do not count as taken, so
    /// a slow peer makes progress even when the connection's queue is empty.
    private var progress: Int {
        let unsent = connection.kind.contains(.tcp) ? connection.socket.unacknowledgedBytes : 0
        return connection.bytesSent - unsent + connection.bytesReceived
    }
}
