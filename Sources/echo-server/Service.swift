import Promises
import Reactor

/// What the service manager is told, if there is one. See sd_notify(3).
struct Service {
    /// Prints a line that is no reason to end.
    let warn: (String) -> Void

    /// Clients can connect.
    func isReady(_ addresses: [SocketAddress], on loop: EventLoop) {
        tell(.ready, .status("listening on " + addresses.map(\.description).joined(separator: ", ")))
        guard let interval = ServiceManager.watchdogInterval else { return }
        // From the loop's own thread: a loop that is held does not say that it lives.
        loop.schedule(every: interval / 2) { tell(.watchdog) }.unref()
    }

    /// The server drains.
    func isStopping() { tell(.stopping) }

    private func tell(_ states: ServiceManager.State...) {
        for state in states {
            do throws(SystemError) { try ServiceManager.notify(state) } catch { warn("cannot tell the service manager: \(error)") }
        }
    }
}
