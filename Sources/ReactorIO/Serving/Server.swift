import Promises
import Reactor
import Synchronization

/// The connections of one call of `Listener.serve`, on the loops of a group or on the listener's own loop. Retained by
/// the listener and by each connection.
// @unchecked: properties are constant since `init` or atomic, or belong to one tracker or to the listener's thread,
// which takes them out in `end`. `start` and `onError` are Sendable if there is a group. Otherwise only the listener's
// thread uses them.
final class Server: @unchecked Sendable {
    /// Begins to serve a connection on its loop. The transfer, if any, has brought it from the listener's loop.
    typealias Start = (ConnectionTracker, Connection, ConnectionTransfer?) -> Void

    let options: ServeOptions
    let counts: ConnectionCounts
    let callSite: CallSite
    let onError: (any Error, Connection) -> Void
    private let start: Start
    private let home: LoopRemote
    /// `nil` if the listener's own loop serves the connections.
    private let group: LoopGroup?
    private let seats: [Seat]
    private var tracker: ConnectionTracker?
    /// The closure to call when there is room again, or when the last connection or loop has ended. Retains the
    /// listener until `end`.
    private var didChange: (() -> Void)?
    /// The connections of clients beyond the limit, until they are closed.
    @exclusivity(unchecked) var refused = OpenConnections()
    private var endWatches: [Int] = []
    private let living: Atomic<Int>

    /// The tracker of a member's loop, while that tracker has connections.
    // @unchecked: accessed only on the thread of the member's loop.
    private final class Seat: @unchecked Sendable {
        weak var tracker: ConnectionTracker?
    }

    init(
        _ options: ServeOptions, on group: LoopGroup?, from loop: EventLoop, _ counts: ConnectionCounts,
        _ onError: @escaping (any Error, Connection) -> Void, at callSite: CallSite, _ start: @escaping Start,
        didChange: @escaping () -> Void
    ) {
        var options = options
        // `onSignal` belongs to the listener's thread, and may refer to the listener.
        options.onSignal = nil
        (self.options, self.group, self.counts) = (options, group, counts)
        (self.onError, self.callSite, self.start, self.didChange) = (onError, callSite, start, didChange)
        home = loop.remote
        seats = group?.map { _ in Seat() } ?? []
        living = Atomic(seats.count)
        guard let group else {
            tracker = ConnectionTracker(on: loop, for: self, loops: 1)
            return
        }
        home.beginExternalWork()
        // Weak, because otherwise a group with a serving listener would never be released, and so never end.
        endWatches = group.map { remote in remote.whenEnded { [weak self] in self?.memberDidEnd() } }
    }

    private var isBelowLimit: Bool { counts.active < options.maxConnections }
    var takesClients: Bool { isBelowLimit || options.overflow != .wait }

    var hasLostAllLoops: Bool { group != nil && living.load(ordering: .relaxed) == 0 }

    // MARK: On the listener's thread

    /// Begins to serve an accepted socket, or refuses its client.
    /// - Returns: false if all loops of the group have ended; then the socket has been closed.
    func take(_ accepted: Accepted) -> Bool {
        if !isBelowLimit, case .refuse(let answer) = options.overflow {
            refuse(accepted.connection(on: .ofCurrentThread), answer)
            return true
        }
        counts.countActive()
        guard let group else {
            if let tracker { start(tracker, accepted.connection(on: tracker.loop), nil) }
            return true
        }
        let transfer = ConnectionTransfer(accepted, to: self)
        while let member = group.pick(options.balancing) {
            if transfer.dispatch(to: member) { return true }
        }
        return false
    }

    func collect<Value: Sendable>(_ body: @escaping @Sendable (Connection) -> Value) -> Guarantee<[Value]> {
        guard let group else { return .value(tracker?.connections.all.map { body($0.connection) } ?? []) }
        return group.collect { [seats] (index: Int) in
            seats[index].tracker?.connections.all.map { body($0.connection) } ?? []
        }.map { answers in answers.flatMap { (try? $0.get()) ?? [] } }
    }

    /// Calls `body` with each tracker, on the thread of its loop, after the connections posted to that loop earlier.
    func forEachTracker(_ body: @escaping @Sendable (ConnectionTracker) -> Void) {
        if let tracker { body(tracker) }
        guard let group else { return }
        for (member, seat) in zip(group.members, seats) {
            member.remote.submit { if let tracker = seat.tracker { body(tracker) } }
        }
    }

    /// Notes only this loop's deliveries; the other loops' sweeps note theirs.
    func noteDelivered() { tracker?.noteDelivered() }

    func end() {
        let released = (didChange.take(), tracker.take())
        if let group {
            // The group's loops may long outlive the listener, so its registrations must not accumulate.
            for (remote, watch) in zip(group, endWatches) { remote.forgetWhenEnded(watch) }
            endWatches = []
            home.endExternalWork()
        }
        withExtendedLifetime(released) {}
    }

    // MARK: On the connections' threads

    /// Called on the thread of a loop of the group, or on the listener's thread.
    private func memberDidEnd() {
        if living.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { notifyListener() }
    }

    func arrived(_ transfer: ConnectionTransfer, _ accepted: Accepted, on member: LoopGroup.Member) {
        let loop = EventLoop.ofCurrentThread
        let seat = seats[member.index]
        let tracker = seat.tracker ?? ConnectionTracker(on: loop, for: self, loops: seats.count)
        seat.tracker = tracker
        start(tracker, accepted.connection(on: loop), transfer)
    }

    func connectionDidBeginLingering() { if counts.countLingering(limit: options.maxConnections) { notifyListener() } }

    func connectionDidEnd(wasLingering: Bool) {
        if counts.countEnd(wasLingering: wasLingering, limit: options.maxConnections) { notifyListener() }
    }

    /// Called only if needed: a message for each change would cost more than everything else.
    private func notifyListener() {
        if group == nil { didChange?() } else { home.submit { self.didChange?() } }
    }
}
