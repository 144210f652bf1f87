import Reactor

/// The connections that a listener serves on one loop: its own, or one of a group.
///
/// Accessed only on the loop's thread. Retained by the connections that it serves; by the listener too, if it serves on its
/// own loop.
final class ConnectionTracker: ConnectionServer {
    private let loop: EventLoop
    private let counters: DrainCounters
    // `@exclusivity(unchecked)`: one thread, and no code of others is called during an access.
    /// All open connections.
    @exclusivity(unchecked) private(set) var running = RunningConnections()
    /// The open connections whose handlers have finished.
    @exclusivity(unchecked) private(set) var lingering = LingeringConnections()
    private let options: TrackerOptions
    /// The connections that draining has ended. By identity: `running` retains them for as long as they are looked up
    /// here.
    private var ended: Set<ObjectIdentifier> = []
    private var sweeping: EventLoop.Timer?
    /// From when on a drain takes a connection for idle that has received something just now.
    private var lastCall = LoopInstant(nanoseconds: .max)
    private var budget: MemoryBudget?
    /// Is called with the errors of handlers. Kept here and not with each connection, since a tracker serves for one
    /// listener; released with the last connection.
    private var onError: ((any Error, Connection) -> Void)?
    /// Runs the tasks of async handlers.
    private lazy var executor = ThreadBoundExecutor(loop)

    /// The interval at which busy connections are checked for having become idle.
    private static var interval: Duration { .milliseconds(20) }
    /// For how long a connection must have received nothing to be taken for idle by a drain, unless it is between two
    /// frames: what its peer has sent may be on its way.
    private static var quietPeriod: Duration { .milliseconds(200) }

    init(on loop: EventLoop, _ counters: DrainCounters, _ options: TrackerOptions) {
        self.loop = loop
        self.counters = counters
        self.options = options
        budget = options.memoryLimit.map {
            MemoryBudget($0, on: loop, didEvict: counters.countEvicted) { [weak self] in
                self?.running.all.map { ($0.connection, $0.work) } ?? []
            }
        }
    }

    private func begin(_ connection: Connection, _ onError: ((any Error, Connection) -> Void)?) -> Int {
        if self.onError == nil { self.onError = onError }
        budget?.begin(for: connection)
        return running.insert(connection)
    }

    var activeCount: Int { running.count - lingering.count }
    var lingeringCount: Int { lingering.count }
    var openCount: Int { running.count }

    func collect<Value: Sendable>(_ body: @escaping @Sendable (Connection) -> Value) -> Guarantee<[Value]> {
        .value(running.all.map { body($0.connection) })
    }

    // It is told of the listener with each connection.
    func begin(for listener: any ServingListener) {}
    func listenerDidClose() {}
    func end() {}

    /// Serves `connection`, and closes it when the handler's promise has settled. `keeper` is retained until the
    /// descriptor is closed.
    // Inlined, so that the operations are specialised for the keeper where `Done` is not known.
    @inline(__always)
    func serve<Done: Thenable, Keeper: ConnectionKeeper>(
        _ connection: Connection, _ keeper: Keeper, _ onError: ((any Error, Connection) -> Void)?,
        _ handler: @escaping (Connection) throws -> Done
    ) {
        let place = begin(connection, onError)
        let work: PromiseCore
        if let prepare = options.prepare {
            work = prepare(connection).then(handler).core
        } else {
            work = firstly { try handler(connection) }.core
        }
        let served = work.derive(Served(tracker: self, place: place, keeper: keeper), role: .runsWhenCancelled)
        running[place]?.work = served
        if options.cancelsWhenPeerGone && connection.lifecycle == .open {
            ServedConnection.of(connection).begin(cancelling: served)
            connection.updateInterest()
        }
    }

    /// Serves `connection` with an async handler, as `serve`.
    func serve<Keeper: ConnectionKeeper>(
        _ connection: Connection, _ keeper: Keeper, _ onError: ((any Error, Connection) -> Void)?,
        awaiting handler: AsyncHandler, _ callSite: CallSite
    ) {
        let place = begin(connection, onError)
        let work = HandlerTask(callSite, on: loop)
        // Not what waits for the task: that runs when the task has ended.
        running[place]?.work = work
        work.start(
            connection, executor, cancelsWhenPeerGone: options.cancelsWhenPeerGone,
            handler.prepared(by: options.prepare))
        _ = work.derive(Served(tracker: self, place: place, keeper: keeper), role: .runsWhenCancelled)
    }

    fileprivate func connectionDidClose(_ place: Int, _ keeper: some ConnectionKeeper) {
        let entry = running.remove(place)
        lingering.remove(place)
        if !ended.isEmpty, let entry, ended.remove(ObjectIdentifier(entry.connection)) != nil { counters.countLeft() }
        // Released last: what it has captured may run code that serves on.
        var unused: ((any Error, Connection) -> Void)?
        if running.count == 0 {
            sweeping.take()?.cancel()
            swap(&unused, &onError)
        }
        keeper.connectionDidEnd()
        withExtendedLifetime(unused) {}
    }

    /// The handler of a connection has finished, but the connection is still closing. It no longer counts as active:
    /// otherwise a slow peer would keep other clients from being served.
    fileprivate func didBeginLingering(_ place: Int, _ keeper: some ConnectionKeeper) {
        lingering.insert(place)
        keeper.connectionDidBeginLingering()
        // No eviction while the listener is drained: then it accepts no client that would need the descriptors, and it
        // has a deadline.
        while sweeping == nil, lingering.unevictedCount > options.lingeringLimit, let oldest = lingering.evictOldest() {
            running[oldest]?.connection.close(linger: .zero)
        }
    }

    // MARK: Draining

    /// Ends idle connections, now and whenever one becomes idle.
    func drain(within deadline: Duration) {
        let now = loop.now
        lastCall = now.advanced(by: deadline - min(deadline / 5, .seconds(1)))
        for connection in running.all.map(\.connection) {
            ServedConnection.of(connection).drain = .init(by: self, received: (connection.bytesReceived, now))
        }
        sweep()
        // An inline handler of a closed connection may have ended the last one.
        if running.count > 0 && sweeping == nil { sweeping = loop.schedule(every: Self.interval) { [self] in sweep() } }
    }

    private func sweep() {
        noteDelivered()
        let now = loop.now
        for connection in running.all.map(\.connection) {
            guard let served = connection.cold?.attachment as? ServedConnection, let drain = served.drain else {
                continue
            }
            if drain.received.count != connection.bytesReceived { drain.received = (connection.bytesReceived, now) }
            let isQuiet = drain.received.since.duration(to: now) >= Self.quietPeriod || now >= lastCall
            if isQuiet || connection.isBetweenFrames { endIfIdle(connection) }
        }
    }

    /// Ends a connection that waits for another frame and owes its peer nothing.
    func endIfAnswered(_ connection: Connection) {
        if connection.isBetweenFrames { endIfIdle(connection) }
    }

    private func endIfIdle(_ connection: Connection) {
        guard connection.isIdle, connection.socket.unreadBytes == 0, !connection.endWaitingLoop() else { return }
        noteIdle(connection)
        connection.close()
    }

    private func noteIdle(_ connection: Connection) {
        if ended.insert(ObjectIdentifier(connection)).inserted { counters.countIdle() }
    }

    /// The handler of a connection has finished. If its loop was ended, the connection counts as idle only now: the
    /// handler might have failed, or have gone on until the deadline.
    fileprivate func handlerDidFinish(_ connection: Connection) {
        if (connection.cold?.attachment as? ServedConnection)?.drain?.hasEndedLoop == true { noteIdle(connection) }
    }

    /// Counts the connections whose handlers have finished, and from which the kernel has taken everything: a drain does
    /// not abort them.
    func noteDelivered() {
        for (place, connection, _) in running.all where connection.lifecycle == .lingering && lingering.contains(place)
        {
            if ended.insert(ObjectIdentifier(connection)).inserted { counters.countLeaving() }
        }
    }

    /// The drain deadline has been reached.
    func abortAll() {
        let rest = running.all
        for entry in rest where ended.insert(ObjectIdentifier(entry.connection)).inserted { counters.countLeaving() }
        for (_, connection, work) in rest {
            // A reset would destroy what the kernel has still to deliver.
            if connection.isClosed || connection.isIdle { connection.close(linger: .zero) } else { connection.abort() }
            work?.cancel()
        }
    }

    /// Calls `onError` for the handler of a connection.
    @inline(never)
    fileprivate func report(_ error: any Error, at place: Int) {
        guard let onError, !error.isCancelled, let connection = running[place]?.connection else { return }
        // Not if draining has ended the connection.
        if !ended.contains(ObjectIdentifier(connection)) { onError(error, connection) }
    }
}

// One core per connection instead of a chain of operators: it exists for as long as the connection.

/// Waits for a handler's outcome, whichever it is. Then reports its error, closes the connection, and frees its place once
/// that is done.
/// Fits into the core that waits.
private struct Served<Keeper: ConnectionKeeper>: Operation {
    typealias Input = Never
    typealias Output = Void
    let tracker: ConnectionTracker
    let place: Int
    let keeper: Keeper

    func run(_ source: AnySource, _ core: PromiseCore) {
        if !source.isFulfilled { tracker.report(source.error, at: place) }
        if let connection = tracker.running[place]?.connection {
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
