import Glibc
import Reactor
import Synchronization

// Serving on the loops of a group: this loop accepts, and hands each connection to one of them.

extension Listener {
    /// As `serve`, but on the loops of `group`: this loop accepts, and gives each connection to one of them, where the handler
    /// is called with it. What that connection and the handler's promises are goes on there, and on that thread only.
    ///
    /// ```swift
    /// let group = try LoopGroup(name: "server")
    /// listener.serve(on: group, maxConnections: 10_000) { connection in
    ///     connection.forEachChunk { connection.write($0) }
    /// }.catch { error in log(error) }
    /// ```
    ///
    /// `maxConnections`, `close`, `drain` and `activeConnections` are of all loops together; of `maxLingering` each loop has an
    /// equal share. The group is kept until the last
    /// connection is done. A loop of the group that ends is given no more connections; those that it has end with it, and those
    /// on their way to it are closed.
    /// - Parameters:
    ///   - balancing: which loop the next connection goes to.
    ///   - maxConnections: as for `serve`.
    ///   - maxLingering: as for `serve`.
    ///   - onError: as for `serve`; on the connection's loop.
    ///   - handler: is called on the connection's loop.
    /// - Returns: as `serve`. Also rejected with `ECANCELED` of `accept4` when all loops of the group have ended.
    public func serve<Done: Thenable & SendableMetatype>(
        on group: LoopGroup, balancing: LoopGroup.Balancing = .leastConnections, maxConnections: Int = .max,
        maxLingering: Int? = nil, onError: (@Sendable (any Error, Connection) -> Void)? = nil,
        _ handler: @escaping @Sendable (Connection) throws -> Done, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let lingeringLimit = Self.lingeringLimit(maxLingering, maxConnections)
        let service = GroupServer(group, balancing, maxConnections, lingeringLimit, account, loop.remote) {
            branch, connection, keeper in
            branch.serve(connection, keeper, onError, handler)
        }
        // It is asked by the listener only.
        let promise = startService(maxConnections, maxLingering) { [unowned self] accepted in
            if !service.handOver(accepted) {
                end(GroupServer.errorOfNoLoop)
            }
        }
        if promise.isPending {
            self.group = service
            service.begin(self)
        }
        return Promise(promise.core.traced(root: "serve", Promise<Void>.self, file, line))
    }
}

/// What a listener serves on a group of loops. Held by the listener, and by each connection there.
// @unchecked: `listener` and the watches are touched on the listener's own thread only, and there is no other reference to the
// service when it goes with them, since `listener` refers back to it. The rest is constant, atomic, or a branch's own.
final class GroupServer: @unchecked Sendable {
    typealias Start = @Sendable (ConnectionTracker, Connection, _ keeper: ConnectionTransfer) -> Void

    private let group: LoopGroup
    private let balancing: LoopGroup.Balancing
    private let limit: Int
    private let lingeringLimitOfLoop: Int
    let account: DrainCounters
    private let home: EventLoop.Remote
    private let start: Start
    private let branches: [TrackerBox]
    /// How many connections there are, and whether the listener is closed. One word, so that either the connection that ends or
    /// the listener that is closed at the same time observes the other, and so that each change of the number of active
    /// connections is observed once.
    private let word = Atomic(0)
    // A circle until all is over: nobody else need hold a listener that is serving.
    private var listener: Listener?
    private var endWatch = 0
    private var endWatchesOfMembers: [Int] = []
    /// Loops of the group that have not ended.
    private let living: Atomic<Int>

    /// On the thread of a member: what is served there, as long as anything is.
    // @unchecked: touched on the thread of the member's loop only.
    private final class TrackerBox: @unchecked Sendable {
        weak var branch: ConnectionTracker?
    }

    init(
        _ group: LoopGroup, _ balancing: LoopGroup.Balancing, _ limit: Int, _ lingeringLimit: Int,
        _ account: DrainCounters, _ home: EventLoop.Remote, _ start: @escaping Start
    ) {
        self.group = group
        self.balancing = balancing
        self.limit = limit
        let loops = group.count
        // Rounded up, without a sum that could overflow.
        lingeringLimitOfLoop = lingeringLimit / loops + (lingeringLimit % loops == 0 ? 0 : 1)
        self.account = account
        self.home = home
        self.start = start
        branches = group.map { _ in TrackerBox() }
        living = Atomic(branches.count)
    }

    /// The fields of `word`: one bit for a closed listener, then the active connections, then the lingering ones. Fewer of either
    /// than there are descriptor numbers, so no field overflows.
    private enum Counts {
        static let closed = 1
        static let oneActive = 2
        static let oneLingering = 1 << 32

        static func active(_ word: Int) -> Int { word % oneLingering / oneActive }
        static func lingering(_ word: Int) -> Int { word / oneLingering }
    }

    var activeCount: Int { Counts.active(word.load(ordering: .acquiring)) }
    var lingeringCount: Int { Counts.lingering(word.load(ordering: .acquiring)) }
    var openCount: Int {
        let word = word.load(ordering: .acquiring)
        return Counts.active(word) + Counts.lingering(word)
    }

    // MARK: On the listener's thread

    func begin(_ listener: Listener) {
        self.listener = listener
        home.beginExternalWork()
        // At its limit the listener waits for nothing that would tell it of the loop's end.
        endWatch = home.whenEnded { self.listenerLoopDidEnd() }
        // Weak: a group that somebody still serves on would never be let go, and so never end.
        endWatchesOfMembers = group.map { remote in remote.whenEnded { [weak self] in self?.memberDidEnd() } }
    }

    /// On the thread of a loop of the group, or this one.
    private func memberDidEnd() {
        guard living.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        home.submit {
            if let listener = self.listener, !listener.isClosed { listener.end(Self.errorOfNoLoop) }
        }
    }

    static var errorOfNoLoop: SystemError {
        SystemError(.accept, ECANCELED, detail: "all loops of the group have ended")
    }

    /// False if there is no loop any more; then the connection is closed.
    func handOver(_ accepted: Accepted) -> Bool {
        word.add(Counts.oneActive, ordering: .relaxed)
        let handOff = ConnectionTransfer(accepted, self)
        while let member = group.pick(balancing) {
            handOff.destination = member
            if member.remote.submit({ handOff.arrive() }) { return true }
            member.noteEnd()
        }
        return false
    }

    /// The listener accepts no more.
    func close() { word.bitwiseOr(Counts.closed, ordering: .acquiringAndReleasing) }

    /// Closed, and without connections.
    func end() {
        guard listener.take() != nil else { return }
        home.forgetWhenEnded(endWatch)
        for (remote, watch) in zip(group, endWatchesOfMembers) { remote.forgetWhenEnded(watch) }
        home.endExternalWork()
    }

    private func listenerLoopDidEnd() {
        let listener = listener.take()
        listener?.listenerLoopDidEnd()
    }

    func drain() { tellBranches { $0.drain() } }

    func abortAll() { tellBranches { $0.abortAll() } }

    private func tellBranches(_ body: @escaping @Sendable (ConnectionTracker) -> Void) {
        for member in group.members {
            let box = branches[member.index]
            member.remote.submit { if let branch = box.branch { body(branch) } }
        }
    }

    // MARK: On other threads

    func arrived(_ handOff: ConnectionTransfer, _ accepted: Accepted, on member: LoopGroup.Member) {
        let loop = EventLoop.ofCurrentThread
        let box = branches[member.index]
        let branch = box.branch ?? ConnectionTracker(on: loop, account)
        branch.lingeringLimit = lingeringLimitOfLoop
        box.branch = branch
        start(branch, accepted.connection(on: loop), handOff)
    }

    /// The listener gets a message only where a change makes a difference to it: there was no room, or this was the last
    /// connection. A message for each would cost more than the rest.
    func connectionDidEnd(wasLingering: Bool) {
        let change = wasLingering ? Counts.oneLingering : Counts.oneActive
        let left = word.subtract(change, ordering: .acquiringAndReleasing).newValue
        guard !wasLingering && Counts.active(left) == limit - 1 || left == Counts.closed else { return }
        home.submit { self.listener?.connectionDidEnd() }
    }

    func connectionDidBeginLingering() {
        let left = word.add(Counts.oneLingering - Counts.oneActive, ordering: .acquiringAndReleasing).newValue
        if Counts.active(left) == limit - 1 { home.submit { self.listener?.connectionDidBeginLingering() } }
    }
}

/// A connection that is given to another loop: on its way, and as long as it is served there. Its end is the connection's,
/// whatever has become of the loop.
// @unchecked: `accepted` is touched by the job that takes it, on the loop's thread, or at the end of this object; `isDone` and
// `isLingering` on that thread, and then; `destination` before the job is on its way, and afterwards only read.
final class ConnectionTransfer: @unchecked Sendable {
    private let service: GroupServer
    private var accepted: Accepted?
    /// Whether its handler has come to an end, and its descriptor is closed.
    var isDone = false
    /// Whether its handler has come to an end, and its descriptor is not closed yet.
    private var isLingering = false
    var destination: LoopGroup.Member? {
        didSet {
            oldValue?.load.subtract(1, ordering: .relaxed)
            destination?.load.add(1, ordering: .relaxed)
        }
    }

    init(_ accepted: Accepted, _ service: GroupServer) {
        self.accepted = accepted
        self.service = service
    }

    deinit {
        // The loop has ended before it took it.
        if let accepted { _ = Glibc.close(accepted.fd) }
        destination?.load.subtract(1, ordering: .relaxed)
        if !isDone { service.account.countLost() }
        service.connectionDidEnd(wasLingering: isLingering)
    }

    func didBeginLingering() {
        isLingering = true
        service.connectionDidBeginLingering()
    }

    func arrive() {
        guard let accepted = accepted.take(), let destination else { return }
        service.arrived(self, accepted, on: destination)
    }
}
