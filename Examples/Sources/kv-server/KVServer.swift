import CMalloc
import ExampleSupport
import Glibc
import Promises
import Reactor
import ReactorConsole
import ReactorIO

/// The program: listens, prints its address, and serves until SIGTERM or SIGINT.
@main
enum KVServer {
    static func main() {
        // A large value takes the memory that others have left, instead of requesting its pages and returning them each
        // time. What many clients have left is returned when they have gone: see `hasReleasedMuch`.
        mallopt(M_MMAP_THRESHOLD, 32 << 20)
        mallopt(M_TRIM_THRESHOLD, 256 << 20)
        runProgram("kv-server") { arguments in try serve(Options(arguments)) }
    }

    private static func serve(_ options: Options) throws {
        let listener = try Listener.bind(options.address, backlog: 1024, options: [.set(.keepAlive, to: true)])
        let server = Server(limits: options.limits)
        // The first signal closes idle connections and lets busy ones finish; a second signal resets them.
        let served = listener.serve(
            ServeOptions(
                maxConnections: 10_000, memoryLimit: options.limits.memory, stopSignals: [SIGTERM, SIGINT],
                drainTimeout: .seconds(10))
        ) { connection in Session(connection, of: server).serve() }
        let console = try options.console.map { try Console.start(at: $0) }
        defer { console?.stop() }
        listener.printAddress()
        try hang(served)
    }
}

/// State shared by all sessions. Everything runs on one thread, so there are no locks.
package final class Server {
    let store = Store()
    let channels = Channels()
    let limits: Limits
    let start = EventLoop.current.now
    var openSessions = 0
    /// True after much memory was released; malloc keeps it until it is trimmed.
    var hasReleasedMuch = false
    var acceptedSessions = 0
    /// Indexed by the raw values of the commands.
    let statistics = Command.allCases.map { _ in CommandStatistics() }

    package init(limits: Limits) {
        self.limits = limits
        scheduleSweep(after: Self.sweepInterval)
    }

    private static let sweepInterval = Duration.milliseconds(100)

    /// Removes expired keys that no client asks for. A sweep checks a bounded number of keys, and the next one follows
    /// soon if it found many, so that clients are served in between.
    private func scheduleSweep(after delay: Duration) {
        EventLoop.current.schedule(after: delay) { [self] in
            let foundMany = store.sweep(atMost: 1000)
            if hasReleasedMuch { malloc_trim(0) }
            hasReleasedMuch = false
            scheduleSweep(after: foundMany ? .milliseconds(1) : Self.sweepInterval)
        }.unref()
    }
}
