import Reactor

/// The connections that a listener serves on one loop: its own, or one of a group.
///
/// Accessed only on the loop's thread. Retained by the connections that it serves; also by the listener, if it serves
/// on its own loop.
final class ConnectionTracker: ConnectionServer {
    let loop: EventLoop
    let counts: ConnectionCounts
    // `@exclusivity(unchecked)`: one thread, and no outside code is called during an access.
    @exclusivity(unchecked) private(set) var connections = OpenConnections()
    private let prepare: (@Sendable (Connection) -> Promise<Connection>)?
    private let cancelsWhenPeerGone: Bool
    /// The maximum number of lingering connections. One more evicts the one that has lingered longest.
    private let lingeringLimit: Int
    private var budget: MemoryBudget?
    var isDraining = false
    /// Checks busy connections during a drain.
    var sweeping: EventLoop.Timer?
    /// Called with the errors of handlers.
    private let onError: ((any Error, Connection) -> Void)?
    /// Runs the tasks of async handlers.
    private lazy var executor = ThreadBoundExecutor(loop)

    /// - Parameter loops: the number of loops that share the limits of `options`.
    init(
        on loop: EventLoop, _ counts: ConnectionCounts, _ options: ServeOptions,
        _ onError: ((any Error, Connection) -> Void)?, loops: Int = 1
    ) {
        self.loop = loop
        self.counts = counts
        self.onError = onError
        prepare = options.prepare
        cancelsWhenPeerGone = options.cancelsWhenPeerGone
        lingeringLimit = options.lingeringLimit(loops: loops)
        budget = options.memoryLimit.map {
            MemoryBudget($0 / loops, on: loop, didEvict: counts.countEvicted) { [weak self] in
                self?.connections.all.map { ($0.connection, $0.work) } ?? []
            }
        }
    }

    private func begin(_ connection: Connection) -> Int {
        budget?.begin(for: connection)
        return connections.insert(connection)
    }

    var open: (active: Int, lingering: Int) {
        (connections.count - connections.lingeringCount, connections.lingeringCount)
    }

    func collect<Value: Sendable>(_ body: @escaping @Sendable (Connection) -> Value) -> Guarantee<[Value]> {
        .value(connections.all.map { body($0.connection) })
    }

    func listenerDidClose() {}
    func end() {}

    /// Serves `connection`, and closes it when the handler's promise has settled. `keeper` is retained until the
    /// descriptor is closed.
    // Inlined, so that the operations are specialised for the keeper where `Done` is not known.
    @inline(__always)
    func serve<Done: Thenable, Keeper: ConnectionKeeper>(
        _ connection: Connection, _ keeper: Keeper, _ handler: @escaping (Connection) throws -> Done
    ) {
        let place = begin(connection)
        let work: PromiseCore
        if let prepare {
            work = prepare(connection).then(handler).core
        } else {
            work = firstly { try handler(connection) }.core
        }
        let served = work.derive(Served(tracker: self, place: place, keeper: keeper), role: .runsWhenCancelled)
        connections.setWork(served, at: place)
        if cancelsWhenPeerGone && connection.lifecycle == .open {
            ServedConnection.of(connection).begin(cancelling: served, whenPeerGone: true)
            connection.updateInterest()
        }
    }

    /// Serves `connection` with an async handler, as `serve`.
    func serve<Keeper: ConnectionKeeper>(
        _ connection: Connection, _ keeper: Keeper,
        awaiting handler: @escaping @isolated(any) (Connection) async throws -> Void, _ callSite: CallSite
    ) {
        let place = begin(connection)
        let work = HandlerTask(callSite, on: loop)
        // Not the core that waits for the task: that runs when the task has ended.
        connections.setWork(work, at: place)
        work.start(connection, executor, cancelsWhenPeerGone: cancelsWhenPeerGone, prepare, handler)
        _ = work.derive(Served(tracker: self, place: place, keeper: keeper), role: .runsWhenCancelled)
    }

    /// Calls `onError` for the handler of a connection.
    @inline(never)
    fileprivate func report(_ error: any Error, at place: Int) {
        guard let onError, !error.isCancelled, let connection = connections[place] else { return }
        if ServedConnection.existing(of: connection)?.isLeaving != true { onError(error, connection) }
    }

    /// Called when a connection is still closing. It no longer counts as active: otherwise a slow peer would keep other
    /// clients from being served.
    fileprivate func didBeginLingering(_ place: Int, _ keeper: some ConnectionKeeper) {
        connections.beginLingering(place)
        keeper.connectionDidBeginLingering()
        // No eviction during a drain: the listener accepts no client that would need the descriptors, and there is a
        // deadline.
        while !isDraining, connections.unevictedCount > lingeringLimit, let oldest = connections.evictOldest() {
            oldest.close(linger: .zero)
        }
    }

    fileprivate func connectionDidClose(_ place: Int, _ keeper: some ConnectionKeeper) {
        let entry = connections.remove(place)
        if isDraining, let entry {
            if ServedConnection.existing(of: entry.connection)?.isLeaving == true { counts.countLeft() }
            if connections.count == 0 { sweeping.take()?.cancel() }
        }
        keeper.connectionDidClose()
    }
}

// One core per connection instead of a chain of operators: it lives as long as the connection.

/// Waits for a handler's outcome. Then reports its error, closes the connection, and frees its place once that is done.
/// Fits into the waiting core.
private struct Served<Keeper: ConnectionKeeper>: Operation {
    typealias Input = Never
    typealias Output = Void
    let tracker: ConnectionTracker
    let place: Int
    let keeper: Keeper

    func run(_ source: AnySource, _ core: PromiseCore) {
        if !source.isFulfilled { tracker.report(source.error, at: place) }
        if let connection = tracker.connections[place] {
            tracker.handlerDidFinish(connection)
            _ = connection.close().core.derive(ReleaseSlot(tracker: tracker, place: place, keeper: keeper))
            if connection.lifecycle.hasDescriptor { tracker.didBeginLingering(place, keeper) }
        }
        core.finish(())
    }
}

/// Runs when the descriptor of a served connection has been closed.
private struct ReleaseSlot<Keeper: ConnectionKeeper>: Operation {
    typealias Input = Never
    typealias Output = Void
    let tracker: ConnectionTracker
    let place: Int
    let keeper: Keeper

    func run(_ source: AnySource, _ core: PromiseCore) {
        tracker.connectionDidClose(place, keeper)
        core.finish(())
    }
}
