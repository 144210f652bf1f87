import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// The server: its listeners, and the loops that serve their connections.
final class EchoServer {
    private let options: Options
    /// The listeners on the service manager's sockets, and on the command line's.
    private let inherited, bound: Listener?
    /// The serving loops, if several. This thread's loop then only accepts.
    private let group: LoopGroup?
    /// Each group loop's worker.
    private let workers: LoopLocal<Worker>
    /// The worker of this thread's loop, which serves without a group.
    private let worker: Worker
    private let openCount = OpenCount()
    private let former = FormerWorkers()
    private(set) var isDraining = false
    /// The number of connections reset because they were busy at the end of the drain timeout.
    private var abortedByDrain = 0
    private let share: DescriptorLimit.Share
    /// The reason why fewer connections are served than `--max-connections`, as one line, if any.
    let shortage: String?

    /// Takes the service manager's sockets, binds every address and starts the threads. If it throws, nothing stays
    /// open.
    init(_ options: Options, _ limit: DescriptorLimit) throws {
        self.options = options
        inherited = try Listener.inherited()
        var addresses = options.addresses
        if addresses.isEmpty && inherited == nil { addresses = [Options.defaultAddress] }
        let metrics = options.metricsAddress == nil ? 0 : MetricsEndpoint.descriptors
        let notifications = getenv("NOTIFY_SOCKET") == nil ? 0 : 1
        share = try limit.share(
            of: options.maxConnections, listeners: (inherited == nil ? 0 : 1) + (addresses.isEmpty ? 0 : 1),
            others: addresses.count + options.loopDescriptors + notifications + metrics, spare: max(metrics - 2, 0))
        bound = addresses.isEmpty ? nil : try Listener.bind(addresses)
        shortage =
            share.maxConnections == options.maxConnections
            ? nil
            : """
            serving at most \(share.maxConnections) connections at a time of each listener, not \(options.maxConnections): \
            the limit of descriptors is \(limit.current) (RLIMIT_NOFILE, \(limit.initial) at the start)
            """
        group = options.loops == 1 ? nil : try LoopGroup(loops: options.loops, name: "echo")
        workers = LoopLocal { [openCount, former] in Worker(idleTimeout: options.idleTimeout, openCount, former) }
        worker = Worker(idleTimeout: options.idleTimeout, openCount, former)
        // Measures turns, since measuring each handler would take a twentieth of the server's time.
        EventLoop.current.measured = .turns
        for remote in group.map(Array.init) ?? [] { remote.submit { EventLoop.current.measured = .turns } }
    }

    /// The listeners' addresses, passed sockets first.
    var addresses: [SocketAddress] { listeners.flatMap(\.localAddresses) }

    var listeners: [Listener] { [inherited, bound].compactMap(\.self) }

    var maxConnections: Int { share.maxConnections }

    var threads: Int { group?.count ?? 1 }

    /// Serves every address. The promise is fulfilled when all listeners and connections are closed.
    func serve() -> Promise<Void> {
        when(fulfilled: listeners.map(serve)).asVoid()
    }

    private func serve(_ listener: Listener) -> Promise<DrainResult> {
        let limits = ServeOptions(maxConnections: share.maxConnections, maxLingering: share.maxLingering)
        guard let group else {
            return listener.serve(
                limits, onError: { [worker] _, _ in worker.statistics.failures += 1 }, handler: worker.serve)
        }
        return listener.serve(
            on: group, limits,
            onError: { [workers] _, connection in workers.value(for: connection).statistics.failures += 1 }
        ) { [workers] connection in workers.value(for: connection).serve(connection) }
    }

    /// Waits for SIGINT or SIGTERM, or until the listeners are closed. The first signal drains the listeners within the
    /// drain timeout.
    /// - Parameters:
    ///   - willDrain: called at the first signal.
    ///   - endNow: called at the second signal.
    /// - Throws: an error from watching the signals.
    func drainAtSignals(
        _ willDrain: @escaping () -> Void, orEndNow endNow: @escaping (CInt) -> Void
    ) throws -> Promise<Void> {
        let drained = Listener.drain(listeners, atFirstOf: [SIGINT, SIGTERM], deadline: options.drainTimeout) {
            [self] signal in
            if isDraining { return endNow(signal) }
            isDraining = true
            willDrain()
        }
        if let error = drained.error { throw error }
        return drained.map { self.abortedByDrain = $0.aborted }
    }

    // MARK: Reports

    /// Collects each loop's figures on its own thread.
    func report() -> Promise<Report> {
        let main = (name: "main", metrics: EventLoop.current.metrics)
        guard let group else {
            let statistics = worker.statistics + Statistics(failures: abortedByDrain)
            return .value(Report(statistics: statistics, peak: openCount.peak, loops: [main]))
        }
        return group.collect(workers) { worker in LoopAnswer(statistics: worker.statistics) }.then { answers in
            // A failed loop has no answer. Its worker's figures arrive when the loop has ended.
            let ended = zip(group, answers).filter { (try? $1.get()) == nil }.map { $0.0.ended }
            return when(guarantees: ended).map { _ in answers.compactMap { try? $0.get() } }
        }
        .map { [openCount, former, abortedByDrain] answers in
            let statistics = answers.map(\.statistics).reduce(former.statistics, +)
            return Report(
                statistics: statistics + Statistics(failures: abortedByDrain), peak: openCount.peak,
                loops: [main] + answers.map { ($0.name, $0.metrics) })
        }.asPromise()
    }

    /// A loop's figures, gathered on its thread.
    private struct LoopAnswer: Sendable {
        let statistics: Statistics
        let name = EventLoop.current.remote.name ?? ""
        let metrics = EventLoop.current.metrics
    }

    /// Returns a promise that is fulfilled when all loops have responded, or rejected if one has ended.
    func alive() -> Promise<Void> {
        guard let group else { return .value }
        return group.collect {}.asPromise().done { answers in for answer in answers { try answer.get() } }
    }

    /// Ends the threads and waits for them.
    func stop() {
        group?.stop()
        group?.join()
    }
}
