// Made by .ci/snippets.py from docs/guides/operating.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/operating.md: systemd
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

// docs/guides/operating.md: Diagnosis
extension Snippets {
    static func operating2() throws {
        try EventLoop.current.onSignal(SIGUSR2) {
            print(EventLoop.current.keepAliveReasons)
            for promise in EventLoop.pendingPromises { print(promise) }
            fflush(nil)    // standard output to a pipe or to the journal is buffered
        }.unref()
    }
}
