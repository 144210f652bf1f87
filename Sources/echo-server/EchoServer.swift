import Glibc
import Promises
import Reactor

/// The server: its listeners, and the loops that serve their connections.
final class EchoServer {
    private let options: Options
    /// The listeners on the sockets that the service manager has passed, and on those of the command line.
    private let inherited, bound: Listener?
    /// The loops that serve, if there are several. This thread's loop then only accepts.
    private let group: LoopGroup?
    /// One worker for each loop that serves.
    private let workers: [Worker]
    private let openCount = OpenCount()
    private(set) var isDraining = false
    /// Connections that were reset because they were still busy at the end of the drain timeout.
    private var abortedByDrain = 0
    /// The number of connections that a listener may serve, and the number that may linger in addition.
    private let share: DescriptorLimit.Share
    /// The reason why fewer connections are served than `--max-connections` asks for, as one line; `nil` if there is
    /// none.
    let shortage: String?

    /// Takes the sockets that the service manager has passed, binds every address and starts the threads. If it throws,
    /// it leaves nothing behind.
    init(_ options: Options, _ limit: DescriptorLimit) throws {
        self.options = options
        inherited = try Listener.inherited()
        var addresses = options.addresses
        if addresses.isEmpty && inherited == nil { addresses = [Options.defaultAddress] }
        bound = addresses.isEmpty ? nil : try Listener.bind(addresses)
        let sockets = [inherited, bound].reduce(0) { $0 + ($1?.localAddresses.count ?? 0) }
        let others = options.descriptorsBesideConnections + sockets
        share = limit.share(
            of: options.maxConnections, listeners: [inherited, bound].count { $0 != nil }, others: others)
        shortage =
            share.maxConnections == options.maxConnections
            ? nil
            : """
            serving at most \(share.maxConnections) connections at a time of each listener, not \(options.maxConnections): \
            the limit of descriptors is \(limit.current) (RLIMIT_NOFILE, \(limit.initial) at the start)
            """
        group = options.loops == 1 ? nil : try LoopGroup(loops: options.loops, name: "echo")
        let remotes = group.map(Array.init) ?? [EventLoop.current.remote]
        workers = remotes.map { [openCount] in Worker(on: $0, idleTimeout: options.idleTimeout, openCount) }
        // By the turn: measuring each handler would take a twentieth of the server's time.
        EventLoop.current.measuresTurns = true
        for remote in group.map(Array.init) ?? [] { remote.submit { EventLoop.current.measuresTurns = true } }
    }

    /// The addresses of the listeners, those of passed sockets first.
    var addresses: [SocketAddress] { listeners.flatMap(\.localAddresses) }

    private var listeners: [Listener] { [inherited, bound].compactMap(\.self) }

    var maxConnections: Int { share.maxConnections }

    /// The number of threads that serve.
    var threads: Int { workers.count }

    /// Serves every address. Fulfilled when all listeners are closed and the last connection has ended.
    func serve() -> Promise<Void> {
        when(fulfilled: listeners.map(serve))
    }

    private func serve(_ listener: Listener) -> Promise<Void> {
        guard let group else {
            let worker = workers[0]
            return listener.serve(
                maxConnections: share.maxConnections, maxLingering: share.maxLingering,
                onError: { _, _ in worker.noteFailure() }, worker.serve)
        }
        let workers = Dictionary(uniqueKeysWithValues: workers.map { ($0.remote, $0) })
        @Sendable func workerOfThisThread() -> Worker { workers[EventLoop.current.remote]! }
        return listener.serve(
            on: group, maxConnections: share.maxConnections, maxLingering: share.maxLingering,
            onError: { _, _ in workerOfThisThread().noteFailure() }, { workerOfThisThread().serve($0) })
    }

    /// Waits for SIGINT or SIGTERM, or for the end of the listeners. The first signal stops accepting, ends connections
    /// that owe their clients nothing, lets the others finish within the drain timeout, and resets the remaining ones.
    /// - Parameters:
    ///   - willDrain: is called at the first signal.
    ///   - endNow: is called with the second signal.
    func drainAtSignals(_ willDrain: @escaping () -> Void, orEndNow endNow: @escaping (CInt) -> Void) -> Promise<Void> {
        Listener.drain(listeners, atFirstOf: [SIGINT, SIGTERM], deadline: options.drainTimeout) { [self] signal in
            if isDraining { return endNow(signal) }
            isDraining = true
            willDrain()
            // The service manager keeps its sockets, so clients that wait there are left to the process that comes
            // after this one.
            bound?.close(drain: true)
        }
        .map { self.abortedByDrain = $0.aborted }
    }

    // MARK: Reports

    /// Collects the figures of each loop, on the loop's own thread.
    func report() -> Promise<Report> {
        let main = (name: "main", metrics: EventLoop.current.metrics)
        guard group != nil else {
            let statistics = workers[0].statistics.adding(failures: abortedByDrain)
            return .value(Report(statistics: statistics, peak: openCount.peak, loops: [main]))
        }
        return when(fulfilled: workers.map(ask)).map { [openCount, abortedByDrain] answers in
            Report(
                statistics: answers.map(\.statistics).reduce(Statistics(), +).adding(failures: abortedByDrain),
                peak: openCount.peak, loops: [main] + answers.flatMap(\.loop))
        }
    }

    private typealias Answer = (statistics: Statistics, loop: [(name: String, metrics: LoopMetrics)])

    private func ask(_ worker: Worker) -> Promise<Answer> {
        Promise.value
            .map(on: worker.remote) { () -> Answer in
                (worker.statistics, [(worker.remote.name ?? "", EventLoop.current.metrics)])
            }
            // The loop has failed; the figures of its worker still count.
            .recover { _ in worker.remote.ended.map { (worker.statistics, []) } }
    }

    /// Fulfilled when all loops have responded, and rejected if one has ended.
    func alive() -> Promise<Void> {
        guard group != nil else { return .value }
        return when(fulfilled: workers.map { Promise.value.map(on: $0.remote) {} }).asVoid()
    }

    /// Ends the threads and waits for their end.
    func stop() {
        group?.stop()
        group?.join()
    }
}
