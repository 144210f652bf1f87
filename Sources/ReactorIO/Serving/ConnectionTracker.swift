import Promises
import Reactor

/// The connections that a listener serves on one loop. Accessed only on the loop's thread. Retained by its connections,
/// and by the server if that serves on the listener's own loop.
final class ConnectionTracker {
    let loop: EventLoop
    let server: Server
    // `@exclusivity(unchecked)`: one thread, and no outside code is called during an access.
    @exclusivity(unchecked) private(set) var connections = OpenConnections()
    /// The maximum number of lingering connections. One more evicts the longest lingering one.
    private let lingeringLimit: Int
    private var budget: MemoryBudget?
    var isDraining = false
    var isAborted = false
    /// Checks busy connections during a drain.
    var sweeping: EventLoop.Timer?
    private lazy var executor = ThreadBoundExecutor(loop)

    /// - Parameter loops: the number of loops that share the limits in the server's options.
    init(on loop: EventLoop, for server: Server, loops: Int) {
        self.loop = loop
        self.server = server
        lingeringLimit = server.options.lingeringLimit(loops: loops)
        budget = server.options.memoryLimit.map {
            MemoryBudget($0 / loops, on: loop, didEvict: server.counts.countEvicted) { [weak self] in
                self?.connections.all.map { ($0.connection, $0.work) } ?? []
            }
        }
        InspectedObjects.add(self, ofLoop: loop.serial)
    }

    deinit { InspectedObjects.remove(self) }

    private func begin(_ connection: Connection) -> Int {
        budget?.begin(for: connection)
        return connections.insert(connection)
    }

    /// Serves `connection`, and closes it when the handler's promise has settled. Retains `transfer` until the
    /// descriptor is closed.
    func serve<Done: Thenable>(
        _ connection: Connection, _ transfer: ConnectionTransfer?, _ handler: @escaping (Connection) throws -> Done
    ) {
        let place = begin(connection)
        let work: PromiseCore
        if let prepare = server.options.prepare {
            work = prepare(connection).then(handler).core
        } else {
            work = firstly { try handler(connection) }.core
        }
        let served = work.derive(Served(tracker: self, place: place, transfer: transfer), role: .observes)
        connections.setWork(served, at: place)
        if server.options.cancelsWhenPeerGone && connection.lifecycle == .open {
            ServedConnection.of(connection).begin(cancelling: served)
            connection.updateInterest()
        }
        // The handler has turned the loop, and an abort then did not reach this promise.
        if isAborted { served.cancel() }
    }

    func serve(
        _ connection: Connection, _ transfer: ConnectionTransfer?,
        awaiting handler: @escaping @isolated(any) (Connection) async throws -> Void, _ callSite: CallSite
    ) {
        let place = begin(connection)
        let work = HandlerTask(callSite, on: loop)
        // The task's promise, not the core derived below, which runs when the task has ended.
        connections.setWork(work.core, at: place)
        work.start(connection, executor, server.options, handler)
        _ = work.core.derive(Served(tracker: self, place: place, transfer: transfer))
    }

    @inline(never)
    fileprivate func report(_ error: any Error, at place: Int) {
        guard !error.isCancelled, let connection = connections[place] else { return }
        if ServedConnection.existing(of: connection)?.isLeaving != true { server.onError(error, connection) }
    }

    /// Stops counting a closing connection as active. Otherwise a slow peer would keep other clients from being served.
    fileprivate func didBeginLingering(_ place: Int, _ transfer: ConnectionTransfer?) {
        connections.beginLingering(place)
        transfer?.isLingering = true
        server.connectionDidBeginLingering()
        // A drain evicts nothing: it has a deadline, and accepts no client that would need the descriptors.
        while !isDraining, connections.unevictedCount > lingeringLimit, let oldest = connections.evictOldest() {
            oldest.close(linger: .zero)
        }
    }

    fileprivate func connectionDidClose(_ place: Int, _ transfer: ConnectionTransfer?) {
        guard let entry = connections.remove(place) else { return }
        if isDraining {
            if ServedConnection.existing(of: entry.connection)?.isLeaving == true { server.counts.countLeft() }
            if connections.count == 0 { sweeping.take()?.cancel() }
        }
        if let transfer { transfer.isDone = true } else { server.connectionDidEnd(wasLingering: entry.lingers) }
    }
}

// One core instead of a chain of operators, because it lives as long as the connection.

/// Waits for a handler's outcome, reports its error, closes the connection, and then frees its place.
private struct Served: Operation {
    typealias Input = Never
    typealias Output = Void
    let tracker: ConnectionTracker
    let place: Int
    let transfer: ConnectionTransfer?

    func run(_ source: AnySource, _ core: PromiseCore) {
        if !source.isFulfilled { tracker.report(source.error, at: place) }
        if let connection = tracker.connections[place] {
            tracker.handlerDidFinish(connection)
            _ = connection.close().core.derive(ReleaseSlot(tracker: tracker, place: place, transfer: transfer))
            if connection.lifecycle.hasDescriptor { tracker.didBeginLingering(place, transfer) }
        }
        core.finish(())
    }
}

private struct ReleaseSlot: Operation {
    typealias Input = Never
    typealias Output = Void
    let tracker: ConnectionTracker
    let place: Int
    let transfer: ConnectionTransfer?

    func run(_ source: AnySource, _ core: PromiseCore) {
        tracker.connectionDidClose(place, transfer)
        core.finish(())
    }
}
