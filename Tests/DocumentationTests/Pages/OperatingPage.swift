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

// docs/guides/operating.md: Draining and restarts
extension Snippets {
    static func operating2() throws {
        let listener = try Listener.bind("127.0.0.1:7000")
        var isDraining = false
        let options = ServeOptions(
            stopSignals: [SIGTERM, SIGINT], drainTimeout: .seconds(30),
            onSignal: { signal in
                if isDraining { exit(128 + signal) }           // the second means now; exit(3) runs what atexit(3) was given
                isDraining = true
            })
        let served = listener.serve(options) { connection in connection.forEachChunk { connection.write($0) } }
        try hang(served)
        _ = listener
        _ = isDraining
        _ = options
        _ = served
    }
}

// docs/guides/operating.md: Diagnosis
extension Snippets {
    static func operating3() throws {
        try EventLoop.current.onSignal(SIGUSR2) {
            print(EventLoop.current.keepAliveReasons)
            for promise in EventLoop.pendingPromises { print(promise) }
            fflush(nil)    // standard output to a pipe or to the journal is buffered
        }.unref()
    }
}
