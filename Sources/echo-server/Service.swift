import Promises
import Reactor

/// What the service manager is told, if there is one. See sd_notify(3).
final class Service {
    /// Prints a line that is no reason to end.
    private let warn: (String) -> Void
    private var hasFailed = false

    init(warn: @escaping (String) -> Void) { self.warn = warn }

    /// Clients can connect. From now on the watchdog is fed, until the process ends, as long as `alive` is fulfilled.
    func isReady(_ addresses: [SocketAddress], on loop: EventLoop, _ alive: @escaping () -> Promise<Void>) {
        let places = addresses.map(\.description).joined(separator: ", ")
        tell { () throws(SystemError) in try ServiceManager.notify(.ready, .status("listening on \(places)")) }
        guard let interval = ServiceManager.watchdogInterval else { return }
        // By the loops themselves: one that is held does not say that it lives.
        loop.schedule(every: interval / 2) { [self] in
            alive().done { self.tell { () throws(SystemError) in try ServiceManager.notify(.watchdog) } }
                .catch { error in self.complain("there will be no more watchdog: \(error)") }
        }.unref()
    }

    /// The server drains, for `timeout` at most. The manager may have been told to be less patient than that.
    func isStopping(within timeout: Duration) {
        let microseconds = (timeout + .seconds(5)).components.seconds * 1_000_000
        tell { () throws(SystemError) in
            try ServiceManager.notify(
                .stopping, .status("draining"), ServiceManager.State("EXTEND_TIMEOUT_USEC=\(microseconds)"))
        }
    }

    /// Trouble is reported once: the next watchdog may have no more luck.
    private func tell(_ notify: () throws(SystemError) -> Bool) {
        do throws(SystemError) { _ = try notify() } catch { complain("cannot tell the service manager: \(error)") }
    }

    private func complain(_ trouble: String) {
        if !hasFailed { warn(trouble) }
        hasFailed = true
    }
}
