// Made by .ci/snippets.py from docs/operating.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/operating.md: systemd
extension Snippets {
    static func operating1() throws {
        let listener = try Listener.inherited() ?? Listener.bind("127.0.0.1:7000")
        try ServiceManager.notify(.ready)
        if let interval = ServiceManager.watchdogInterval {
            EventLoop.current.schedule(every: interval / 2) { _ = try? ServiceManager.notify(.watchdog) }.unref()
        }
        _ = listener
    }
}

// docs/operating.md: Tuning
extension Snippets {
    static func operating2() throws {
        let tuned = try Listener.bind(
            "127.0.0.1:0", backlog: 16384,
            options: [.set(.sendBuffer, to: 256 << 10), .set(.userTimeout, to: .seconds(30))])
        _ = tuned
    }
}

// docs/operating.md: Diagnosis
extension Snippets {
    static func operating3() throws {
        try EventLoop.current.onSignal(SIGUSR2) {
            print(EventLoop.current.whatKeepsItAlive)
            print(EventLoop.pendingPromisesReport)
        }.unref()
    }
}
