import Glibc
import Promises
import Reactor

/// What the service manager is told, if there is one. See sd_notify(3).
final class Service {
    private let loop: EventLoop
    /// Prints a line that is no reason to end.
    private let warn: (String) -> Void
    private var hasFailed = false
    /// Messages that the manager had no room for, oldest first.
    private var unsent: [ServiceManager.State] = []
    /// The next try, and how many there were for the first of them.
    private var retry: EventLoop.Timer?
    private var tries = 0

    /// From 10 ms on, doubled up to a second: about a minute. After that the manager is told no more of this message; by
    /// default systemd waits 90 seconds for `READY=1`.
    private static let mostTries = 66
    private static let firstPause: Duration = .milliseconds(10)
    private static let longestPause: Duration = .seconds(1)

    init(on loop: EventLoop, warn: @escaping (String) -> Void) {
        self.loop = loop
        self.warn = warn
    }

    /// Clients can connect. From now on the watchdog is fed, until the process ends, as long as `alive` is fulfilled.
    func notifyReady(_ addresses: [SocketAddress], _ alive: @escaping () -> Promise<Void>) {
        let places = addresses.map(\.description).joined(separator: ", ")
        tell(.ready, .status("listening on \(places)"))
        guard let interval = ServiceManager.watchdogInterval else { return }
        // By the loops themselves: one that is held does not say that it lives.
        loop.schedule(every: interval / 2) { [self] in
            alive().done {
                // A message that waits will do as well: one more could only come too late.
                if self.unsent.isEmpty { self.tell(.watchdog) }
            }
            .catch { error in self.complain("there will be no more watchdog: \(error)") }
        }.unref()
    }

    /// The server drains, for `timeout` at most. The manager may have been told to be less patient than that.
    func notifyStopping(within timeout: Duration) {
        let microseconds = (timeout + .seconds(5)).components.seconds * 1_000_000
        tell(.stopping, .status("draining"), ServiceManager.State("EXTEND_TIMEOUT_USEC=\(microseconds)"))
    }

    /// In one message, after those that wait.
    private func tell(_ states: ServiceManager.State...) {
        unsent.append(ServiceManager.State(states.map(\.text).joined(separator: "\n")))
        if retry == nil { send() }
    }

    /// Sends what is unsent. The queue of the manager's socket may be full (EAGAIN), at a boot for instance, when every service
    /// has something to say: a message that were lost then would never come again.
    private func send() {
        retry = nil
        while let state = unsent.first {
            do throws(SystemError) { try ServiceManager.notify(state) } catch {
                if error.code == EAGAIN && tries < Self.mostTries { return sendLater() }
                // Trouble is reported once: the next message may have no more luck.
                complain("cannot tell the service manager: \(error)")
            }
            unsent.removeFirst()
            tries = 0
        }
    }

    private func sendLater() {
        let timer = loop.schedule(after: min(Self.firstPause * (1 << min(tries, 10)), Self.longestPause)) { [self] in
            send()
        }
        // The server does not go on for this alone.
        timer.unref()
        retry = timer
        tries += 1
    }

    private func complain(_ trouble: String) {
        if !hasFailed { warn(trouble) }
        hasFailed = true
    }
}
