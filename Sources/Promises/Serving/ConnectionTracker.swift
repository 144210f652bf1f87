import Reactor

/// What a served connection retains until its descriptor is closed, and tells how far it is: the listener, if the listener's
/// own loop serves the connection; otherwise the connection's transfer. Called on the loop's thread.
protocol ConnectionKeeper: AnyObject {
    /// The handler is done, and the close is not: the connection has given up its place.
    func connectionDidBeginLingering()
    /// The descriptor is closed.
    func connectionDidEnd()
}

/// What a listener serves on one loop: on its own, or on one of a group.
///
/// Of the loop's thread, and held by the connections that it serves; by the listener too, if the loop is its own.
final class ConnectionTracker {
    private let loop: EventLoop
    private let account: DrainCounters
    /// All that are open.
    private(set) var running = RunningConnections()
    /// Those of them whose handlers are done.
    private(set) var lingering = LingeringConnections()
    /// How many may linger here. The one that has lingered longest makes room for another.
    var lingeringLimit = Int.max
    /// The connections that draining has ended. By identity: `running` holds them while they are asked for.
    private var ended: Set<ObjectIdentifier> = []
    private var sweeping: EventLoop.Timer?

    /// How often it is looked whether a busy connection has become idle.
    private static var interval: Duration { .milliseconds(20) }

    init(on loop: EventLoop, _ account: DrainCounters) {
        self.loop = loop
        self.account = account
    }

    /// How many connections have a handler that is not done.
    var activeCount: Int { running.count - lingering.count }

    /// Serves `connection`, and closes it when the handler's promise has settled. `keeper` is held until its descriptor is
    /// closed.
    // Inlined, so that the operations are specialised for the keeper where `Done` is not known.
    @inline(__always)
    func serve<Done: Thenable, Keeper: ConnectionKeeper>(
        _ connection: Connection, _ keeper: Keeper, _ onError: ((any Error, Connection) -> Void)?,
        _ handler: (Connection) throws -> Done
    ) {
        let place = running.insert(connection)
        let work = firstly { try handler(connection) }.core
        let served = Served(branch: self, place: place, keeper: keeper)
        let waiter =
            if let onError {
                work.derive(ServedAndReported(served: served, onError: onError), role: .runsWhenCancelled)
            } else { work.derive(served, role: .runsWhenCancelled) }
        running[place]?.waiter = waiter
    }

    fileprivate func connectionDidClose(_ place: Int, _ keeper: some ConnectionKeeper) {
        let entry = running.remove(place)
        lingering.remove(place)
        if let entry, ended.remove(ObjectIdentifier(entry.connection)) != nil { account.countLeft() }
        if running.count == 0 { sweeping.take()?.cancel() }
        keeper.connectionDidEnd()
    }

    /// The handler of a connection is done, and its close is not. It gives up its place: a peer that takes its time would
    /// otherwise keep others from being served.
    fileprivate func didBeginLingering(_ place: Int, _ keeper: some ConnectionKeeper) {
        lingering.insert(place)
        keeper.connectionDidBeginLingering()
        // A listener that is drained takes nobody who would need the descriptors, and has a deadline.
        while sweeping == nil, lingering.unevictedCount > lingeringLimit, let oldest = lingering.evictOldest() {
            running[oldest]?.connection.close(linger: .zero)
        }
    }

    // MARK: Draining

    /// Closes connections that are idle, now and whenever one becomes so.
    func drain() {
        sweep()
        // An inline handler of what was closed may have been the last.
        if running.count > 0 && sweeping == nil { sweeping = loop.schedule(every: Self.interval) { [self] in sweep() } }
    }

    private func sweep() {
        for entry in running.all where entry.connection.isIdle && entry.connection.socket.unreadBytes == 0 {
            if ended.insert(ObjectIdentifier(entry.connection)).inserted { account.countIdle() }
            entry.connection.close()
        }
    }

    /// The time for that is up.
    func abortAll() {
        let rest = running.all
        for entry in rest where ended.insert(ObjectIdentifier(entry.connection)).inserted { account.countLeaving() }
        for entry in rest {
            entry.connection.abort()
            entry.waiter?.cancel()
        }
    }

    /// Whether its end was the listener's doing.
    fileprivate func hasEnded(_ connection: Connection) -> Bool { ended.contains(ObjectIdentifier(connection)) }
}

/// The connections that `serve` has running. Places are used again, so that taking one allocates nothing once there have
/// been as many before.
struct RunningConnections {
    struct Entry {
        let connection: Connection
        /// What waits for its handler's promise.
        var waiter: PromiseCore?
    }

    private var entries: ContiguousArray<Entry?> = []
    private var free: ContiguousArray<Int> = []

    var count: Int { entries.count - free.count }

    /// Those that run at the moment.
    var all: [Entry] { entries.compactMap { $0 } }

    mutating func insert(_ connection: Connection) -> Int {
        if let place = free.popLast() {
            entries[place] = Entry(connection: connection)
            return place
        }
        entries.append(Entry(connection: connection))
        return entries.count - 1
    }

    mutating func remove(_ place: Int) -> Entry? {
        free.append(place)
        return entries[place].take()
    }

    subscript(place: Int) -> Entry? {
        get { entries[place] }
        set { entries[place] = newValue }
    }
}

// One core a connection, and not a chain of operators: it is there for as long as the connection.

/// What `serve` waits for: the end of a handler, whichever it is. Then the connection is closed, and when that is done
/// its place is free. Fits into the core that waits for it.
private struct Served<Keeper: ConnectionKeeper>: Operation {
    typealias Input = Never
    typealias Output = Void
    let branch: ConnectionTracker
    let place: Int
    let keeper: Keeper

    func run(_ source: AnySource, _ core: PromiseCore) {
        if let connection = branch.running[place]?.connection {
            _ = connection.close().core.derive(ReleaseSlot(branch: branch, place: place, keeper: keeper))
            if connection.lifecycle.hasDescriptor { branch.didBeginLingering(place, keeper) }
        }
        core.finish(())
    }
}

/// The same with somebody to tell of an error, in a block of its own.
private struct ServedAndReported<Keeper: ConnectionKeeper>: Operation {
    typealias Input = Never
    typealias Output = Void
    let served: Served<Keeper>
    let onError: (any Error, Connection) -> Void

    func run(_ source: AnySource, _ core: PromiseCore) {
        if !source.isFulfilled { report(source.error) }
        served.run(source, core)
    }

    private func report(_ error: any Error) {
        let branch = served.branch
        guard !error.isCancelled, let connection = branch.running[served.place]?.connection else { return }
        if !branch.hasEnded(connection) { onError(error, connection) }
    }
}

/// The descriptor of a connection that was served is closed.
private struct ReleaseSlot<Keeper: ConnectionKeeper>: Operation {
    typealias Input = Never
    typealias Output = Void
    let branch: ConnectionTracker
    let place: Int
    let keeper: Keeper

    func run(_ source: AnySource, _ core: PromiseCore) {
        branch.connectionDidClose(place, keeper)
        core.finish(())
    }
}
