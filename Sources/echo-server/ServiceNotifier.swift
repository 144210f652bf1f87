import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// Notifies the service manager, if any. See sd_notify(3).
final class ServiceNotifier {
    private let loop: EventLoop
    /// Prints a warning; the server continues.
    private let warn: (String) -> Void
    private var hasFailed = false
    /// Messages for which the manager's socket had no room, oldest first.
    private var unsent: [ServiceManager.State] = []
    /// The timer for the next attempt, and the number of attempts for the first message.
    private var retry: EventLoop.Timer?
    private var tries = 0

    /// Pauses double from 10 ms to a second, about a minute in all; then the message is dropped. By default, systemd
    /// waits 90 seconds for `READY=1`.
    private static let mostTries = 66
    private static let firstPause: Duration = .milliseconds(10)
    private static let longestPause: Duration = .seconds(1)

    init(on loop: EventLoop, warn: @escaping (String) -> Void) {
        self.loop = loop
        self.warn = warn
    }

    /// Reports that clients can connect. From now on, the watchdog is notified as long as `alive` is fulfilled.
    func notifyReady(_ addresses: [SocketAddress], _ alive: @escaping () -> Promise<Void>) {
        let places = addresses.map(\.description).joined(separator: ", ")
        notify(.ready, .status("listening on \(places)"))
        guard let interval = ServiceManager.watchdogInterval else { return }
        // The loops themselves must respond: a blocked loop is not alive.
        loop.schedule(every: interval / 2) { [self] in
            alive().done {
                // A queued message has the same effect, and would arrive earlier.
                if self.unsent.isEmpty { self.notify(.watchdog) }
            }
            .catch { error in self.complain("the watchdog is no longer notified: \(error)") }
        }.unref()
    }

    /// Reports that the server drains, within `timeout`. The manager may be configured to wait less.
    func notifyStopping(within timeout: Duration) {
        let microseconds = (timeout + .seconds(5)).components.seconds * 1_000_000
        notify(.stopping, .status("draining"), .other("EXTEND_TIMEOUT_USEC=\(microseconds)"))
    }

    /// Sends the states in one message, after the queued ones.
    private func notify(_ states: ServiceManager.State...) {
        unsent.append(.other(states.map(\.text).joined(separator: "\n")))
        if retry == nil { send() }
    }

    /// Sends the queued messages. The manager's socket may be full (EAGAIN), or the machine may be short of
    /// descriptors, for instance at boot, when all services send. A dropped message would never be sent again.
    private func send() {
        retry = nil
        while let state = unsent.first {
            do throws(SystemError) { try ServiceManager.notify(state) } catch {
                if (error.code == EAGAIN || error.isShortage) && tries < Self.mostTries { return sendLater() }
                // Reported once, since the next message may fail too.
                complain("cannot notify the service manager: \(error)")
            }
            unsent.removeFirst()
            tries = 0
        }
    }

    private func sendLater() {
        let timer = loop.schedule(after: min(Self.firstPause * (1 << min(tries, 10)), Self.longestPause)) { [self] in
            send()
        }
        // This timer alone does not keep the server running.
        timer.unref()
        retry = timer
        tries += 1
    }

    private func complain(_ trouble: String) {
        if !hasFailed { warn(trouble) }
        hasFailed = true
    }
}
