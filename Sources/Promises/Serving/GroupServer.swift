import Reactor
import Synchronization

/// The connections that a listener serves on a group of loops. Retained by the listener, and by each connection.
// @unchecked: `listener` and the watches are accessed only on the listener's own thread, which takes them out in `end`.
// The rest is constant since `init`, atomic, or belongs to one tracker.
final class GroupServer: ConnectionServer, @unchecked Sendable {
    typealias Start = @Sendable (ConnectionTracker, Connection, _ keeper: ConnectionTransfer) -> Void

    private let group: LoopGroup
    private var options: ServeOptions
    let counts: ConnectionCounts
    private let home: LoopRemote
    private let onError: (@Sendable (any Error, Connection) -> Void)?
    private let start: Start
    private let trackers: [TrackerBox]
    /// The number of connections, and whether the listener is closed. One word, so that of a connection that ends and a
    /// listener that closes at the same time one observes the other, and so that each change of the number of active
    /// connections is observed once.
    private let word = Atomic(0)
    // A retain cycle until the last connection has ended: a serving listener needs no other reference.
    private var listener: Listener?
    /// The identifiers of `memberDidEnd`, one for each loop of the group.
    private var endWatches: [Int] = []
    /// The number of loops of the group that have not ended.
    private let living: Atomic<Int>

    /// The tracker of a member's loop, while it has connections.
    // @unchecked: accessed on the thread of the member's loop only.
    private final class TrackerBox: @unchecked Sendable {
        weak var tracker: ConnectionTracker?
    }

    init(
        _ group: LoopGroup, _ options: ServeOptions, _ onError: (@Sendable (any Error, Connection) -> Void)?,
        _ start: @escaping Start, for listener: Listener
    ) {
        self.group = group
        self.options = options
        // It belongs to the listener's thread, and may refer to the listener.
        self.options.onSignal = nil
        self.onError = onError
        self.start = start
        self.listener = listener
        counts = listener.drain.counts
        home = listener.loop.remote
        trackers = group.map { _ in TrackerBox() }
        living = Atomic(trackers.count)
        home.beginExternalWork()
        // Weak: otherwise a group with a serving listener would never be released, and never end.
        endWatches = group.map { remote in remote.whenEnded { [weak self] in self?.memberDidEnd() } }
    }

    // The fields of `word`: one bit for a closed listener, then the active connections, then the lingering ones. Fewer
    // of either than there are descriptor numbers, so no field overflows.
    private static let closed = 1
    private static let oneActive = 2
    private static let oneLingering = 1 << 32

    private static func active(in word: Int) -> Int { word % oneLingering / oneActive }

    var open: (active: Int, lingering: Int) {
        let word = word.load(ordering: .acquiring)
        return (Self.active(in: word), word / Self.oneLingering)
    }

    // MARK: On the listener's thread

    func collect<Value: Sendable>(_ body: @escaping @Sendable (Connection) -> Value) -> Guarantee<[Value]> {
        group.collect { [trackers] (index: Int) in
            trackers[index].tracker?.connections.all.map { body($0.connection) } ?? []
        }.map { answers in answers.flatMap { (try? $0.get()) ?? [] } }
    }

    /// Called on the thread of a loop of the group, or on the listener's thread.
    private func memberDidEnd() {
        guard living.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        home.submit { self.listener?.allLoopsDidEnd() }
    }

    /// - Returns: false if all loops of the group have ended; the socket is then closed.
    func handOver(_ accepted: Accepted) -> Bool {
        word.add(Self.oneActive, ordering: .relaxed)
        let transfer = ConnectionTransfer(accepted, to: self)
        while let member = group.pick(options.balancing) {
            if transfer.dispatch(to: member) { return true }
        }
        return false
    }

    func listenerDidClose() { word.bitwiseOr(Self.closed, ordering: .acquiringAndReleasing) }

    func end() {
        guard listener.take() != nil else { return }
        // The group's loops may far outlive the listener: their entries for this server must not accumulate.
        for (remote, watch) in zip(group, endWatches) { remote.forgetWhenEnded(watch) }
        endWatches = []
        home.endExternalWork()
    }

    // After the clients that were posted to these loops before: their trackers exist then.
    func drain(within time: Duration) { forEachTracker { $0.drain(within: time) } }

    // The sweeps of the other loops do that.
    func noteDelivered() {}

    func abortAll() { forEachTracker { $0.abortAll() } }

    private func forEachTracker(_ body: @escaping @Sendable (ConnectionTracker) -> Void) {
        for member in group.members {
            let box = trackers[member.index]
            member.remote.submit { if let tracker = box.tracker { body(tracker) } }
        }
    }

    // MARK: On other threads

    func arrived(_ transfer: ConnectionTransfer, _ accepted: Accepted, on member: LoopGroup.Member) {
        let loop = EventLoop.ofCurrentThread
        let box = trackers[member.index]
        let tracker = box.tracker ?? ConnectionTracker(on: loop, counts, options, onError, loops: group.count)
        box.tracker = tracker
        start(tracker, accepted.connection(on: loop), transfer)
    }

    /// Notifies the listener only if a change matters to it: it was at its limit, or this was the last connection. A
    /// message for each change would cost more than everything else.
    func transferDidEnd(wasLingering: Bool) {
        let change = wasLingering ? Self.oneLingering : Self.oneActive
        let left = word.subtract(change, ordering: .acquiringAndReleasing).newValue
        let hasRoomAgain = !wasLingering && Self.active(in: left) == options.maxConnections - 1
        guard hasRoomAgain || left == Self.closed else { return }
        home.submit { self.listener?.connectionDidClose() }
    }

    func transferDidBeginLingering() {
        let left = word.add(Self.oneLingering - Self.oneActive, ordering: .acquiringAndReleasing)
            .newValue
        if Self.active(in: left) == options.maxConnections - 1 {
            home.submit { self.listener?.connectionDidBeginLingering() }
        }
    }
}
