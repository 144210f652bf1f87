import Glibc
import Reactor

// The limits on a close, so that a peer that reads or sends now and then cannot hold the descriptor.

extension Connection {
    /// The time limit for a `close()` at a socket, from its beginning.
    static var closeTimeLimit: Duration { .seconds(30) }
    /// A `close()` is checked for progress after each interval of this length.
    static var closeCheckInterval: Duration { .seconds(5) }
    /// How many bytes a peer at a socket must take or send within each interval: 1 KiB a second.
    static var closeProgressMinimum: Int { 5 << 10 }
    /// How often a close that ends at a limit reads what has arrived: 64 KiB at a time.
    private static var lastReads: Int { 16 }

    /// Limits the current close to `lingerTime` from now, without a check for progress; a time of zero or less ends it
    /// now. If `lingerTime` is nil, the default limits apply.
    func limitClose(to lingerTime: Duration?) {
        guard let cold else { return }
        cold.closingTimer?.cancel()
        if let lingerTime, lingerTime <= .zero { return endClose() }
        cold.checksCloseProgress = lingerTime == nil
        // The reader of a pipe or a terminal is a program of this machine, which may take its time as long as it makes
        // progress.
        let limit = lingerTime ?? (kind.contains(.socket) ? Self.closeTimeLimit : nil)
        cold.closeDeadline = limit.map { loop.now.advanced(by: $0) }
        scheduleCloseCheck(cold)
    }

    /// The close has reached a limit. What the kernel has taken, it delivers; the peer is reset only where written bytes
    /// are lost.
    private func endClose() {
        if lifecycle == .flushing { flush() }
        // With unread input the kernel would reset.
        for _ in 0..<Self.lastReads where lifecycle == .lingering {
            if !discardInput() { break }
        }
        if lifecycle == .lingering { release() } else { dropAndReset(losesOutput: false) }
    }

    private func scheduleCloseCheck(_ cold: ColdState) {
        let check = cold.checksCloseProgress ? loop.now.advanced(by: Self.closeCheckInterval) : nil
        guard let first = [check, cold.closeDeadline].compactMap(\.self).min() else { return }
        cold.closeProgress = closeProgress
        // Unowned: the timer is cancelled when the descriptor is closed, and until then the poller, or the job that
        // flushes, retains the connection.
        cold.closingTimer = loop.schedule(at: first) { [unowned self] in checkClose() }
    }

    private func checkClose() {
        // The kernel may still hold what the peer did in time, if the loop was delayed, or if more descriptors are
        // ready than it has processed.
        if lifecycle == .flushing { flush() }
        if lifecycle == .lingering { discardInput() }
        guard lifecycle.hasDescriptor, let cold else { return }
        let isLate = cold.closeDeadline.map { $0 <= loop.now } ?? false
        let minimum = kind.contains(.socket) ? Self.closeProgressMinimum : 1
        if isLate || closeProgress - cold.closeProgress < minimum {
            endClose()
        } else {
            scheduleCloseCheck(cold)
            updateInterest()
        }
    }

    /// How many bytes the peer has taken and sent. Bytes in the kernel's send queue do not count as taken: what a slow
    /// peer is still reading has often left the queue here.
    private var closeProgress: Int {
        let unsent = kind.contains(.tcp) ? socket.unacknowledgedBytes : 0
        return bytesSent - unsent + (cold?.discarded ?? 0)
    }
}
