import Promises
import Reactor

/// The server: listeners, the loops that serve the connections they bring, and what becomes of these.
final class EchoServer {
    private let options: Options
    /// On the sockets that the service manager has passed, and on those of the command line.
    private let inherited, bound: Listener?
    /// The loops that serve, if there are several: this thread's then does nothing but accept.
    private let group: LoopGroup?
    /// One for each loop that serves.
    private let workers: [Worker]
    private let openCount = OpenCount()
    private(set) var isDraining = false

    /// Takes the sockets that the service manager has passed, binds every address and starts the threads; or throws, and leaves
    /// none of this.
    init(_ options: Options) throws {
        self.options = options
        inherited = try Listener.inherited()
        var addresses = options.addresses
        if addresses.isEmpty && inherited == nil { addresses = [Options.defaultAddress] }
        bound = addresses.isEmpty ? nil : try Listener.bind(addresses)
        group = options.loops == 1 ? nil : try LoopGroup(loops: options.loops, name: "echo")
        let remotes = group.map(Array.init) ?? [EventLoop.current.remote]
        workers = remotes.map { [openCount] in Worker(on: $0, idleTimeout: options.idleTimeout, openCount) }
        // By the turn: to take the time of each handler would be a twentieth of the server's work.
        EventLoop.current.measuresTurns = true
        for remote in group.map(Array.init) ?? [] { remote.submit { EventLoop.current.measuresTurns = true } }
    }

    /// Where it listens, first what it was passed.
    var addresses: [SocketAddress] { [inherited, bound].flatMap { $0?.localAddresses ?? [] } }

    var maxConnections: Int { options.maxConnections }

    /// How many of them serve.
    var threads: Int { workers.count }

    /// Serves every address; fulfilled when all of them are closed and the last connection is done.
    func serve() -> Promise<Void> {
        when(fulfilled: [inherited, bound].compactMap(\.self).map(serve))
    }

    private func serve(_ listener: Listener) -> Promise<Void> {
        guard let group else {
            let worker = workers[0]
            return listener.serve(
                maxConnections: maxConnections, onError: { _, _ in worker.noteFailure() }, worker.serve)
        }
        let workers = Dictionary(uniqueKeysWithValues: workers.map { ($0.remote, $0) })
        @Sendable func workerOfThisThread() -> Worker { workers[EventLoop.current.remote]! }
        return listener.serve(
            on: group, maxConnections: maxConnections, onError: { _, _ in workerOfThisThread().noteFailure() },
            { workerOfThisThread().serve($0) })
    }

    /// Stops accepting, lets connections finish for as long as the drain timeout, and resets those that are left.
    func drain() {
        isDraining = true
        // Who waits at a socket of the service manager, which keeps it, is for the process that comes after this one.
        inherited?.close()
        bound?.close(drain: true)
        after(options.drainTimeout).done {
            for worker in self.workers { worker.remote.submit { worker.abortAll() } }
        }
    }

    // MARK: What its loops say
    /// Each is asked on its own thread.
    func report() -> Promise<Report> {
        let main = (name: "main", metrics: EventLoop.current.metrics)
        guard group != nil else {
            return .value(Report(statistics: workers[0].statistics, peak: openCount.peak, loops: [main]))
        }
        return when(fulfilled: workers.map(ask)).map { [openCount] answers in
            Report(
                statistics: answers.map(\.statistics).reduce(Statistics(), +), peak: openCount.peak,
                loops: [main] + answers.flatMap(\.loop))
        }
    }

    private typealias Answer = (statistics: Statistics, loop: [(name: String, metrics: EventLoop.Metrics)])

    private func ask(_ worker: Worker) -> Promise<Answer> {
        Promise.value
            .map(on: worker.remote) { () -> Answer in
                (worker.statistics, [(worker.remote.name ?? "", EventLoop.current.metrics)])
            }
            // Its loop has failed; what it has counted counts on.
            .recover { _ in worker.remote.ended.map { (worker.statistics, []) } }
    }

    /// Is fulfilled when all loops have answered, and rejected if one has ended.
    func alive() -> Promise<Void> {
        guard group != nil else { return .value }
        return when(fulfilled: workers.map { Promise.value.map(on: $0.remote) {} }).asVoid()
    }

    /// Ends the threads.
    func stop() {
        group?.stop()
        group?.join()
    }
}
