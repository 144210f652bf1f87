import Glibc
import Reactor

extension Connection {
    /// Fails the connection, with `ETIMEDOUT`, when it has neither received nor sent a byte for this long; `nil`, which
    /// is the default, and anything that is not above zero mean never. A waiting read and waiting writes fail then,
    /// later ones too.
    ///
    /// Activity costs one store. The timer looks at it when it fires and goes on for the rest, so that it is moved once
    /// a period and not once a message.
    public var idleTimeout: Duration? {
        get { rare?.idleTimeout }
        set {
            // A server that has no time-out says so for each connection; that is to cost nothing.
            if newValue == nil && rare == nil { return }
            let rare = rarities
            rare.idleTimeout = newValue
            rare.idleTimer?.cancel()
            rare.idleTimer = nil
            guard phase == .open, let newValue, newValue > .zero else { return }
            lastActivity = loop.now
            armIdleTimer(rare, newValue)
        }
    }

    private func armIdleTimer(_ rare: Rarities, _ timeout: Duration) {
        rare.idleCheck = nil
        rare.idleTimer = loop.schedule(at: lastActivity.advanced(by: timeout)) { [weak self] in self?.idleTimerFired() }
    }

    private func idleTimerFired() {
        guard phase == .open, !hasFailed, let rare, let timeout = rare.idleTimeout else { return }
        guard lastActivity.advanced(by: timeout) <= loop.now else { return armIdleTimer(rare, timeout) }
        // Timers come before events: after a stall of the loop, or of the machine, what has arrived in time may still
        // wait in the kernel. One turn for it, and only then is silence silence.
        guard rare.idleCheck == bytesReceived + bytesSent else {
            rare.idleCheck = bytesReceived + bytesSent
            rare.idleTimer = loop.schedule(after: .zero) { [weak self] in self?.idleTimerFired() }
            return
        }
        let error = SystemError(readCall, ETIMEDOUT, detail: "idle for \(timeout)")
        failure = error
        hasEnded = true
        failRead(error)
        failWrites()
        updateInterest()
    }
}
