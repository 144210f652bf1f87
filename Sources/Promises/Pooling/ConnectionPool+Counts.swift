import Reactor

extension ConnectionPool {
    /// How many connections and requests a pool has.
    public struct Counts: Hashable, Sendable {
        /// Connections that are being opened or prepared.
        public let connecting: Int
        /// Connections that are open: in use, idle, or with writes in their queue after their last request.
        public let open: Int
        /// Open connections that wait for their next request.
        public let idle: Int
        /// Requests that have no connection yet.
        public let waiting: Int
    }

    /// The counts of all addresses together, for metrics. In constant time.
    public var counts: Counts {
        loop.assertOwner()
        return Counts(
            connecting: state.connectingCount, open: state.memberCount - state.connectingCount, idle: state.idleCount,
            waiting: state.waitingCount)
    }

    /// The counts of each address that has connections or requests, for metrics. The key is the text of the address, as in
    /// `PoolError`. In time that is linear in the number of addresses.
    public var countsByAddress: [String: Counts] {
        loop.assertOwner()
        let counts = state.lines.keys.map { target in (target.description, Counts(state.counts(of: target))) }
        // A list of one address has the text of that address.
        return Dictionary(counts, uniquingKeysWith: +)
    }
}

extension ConnectionPool.Counts {
    fileprivate init(_ counts: PoolState.TargetCounts) {
        self.init(
            connecting: counts.connecting, open: counts.members - counts.connecting, idle: counts.idle,
            waiting: counts.waiting + counts.checked)
    }

    fileprivate static func + (one: Self, other: Self) -> Self {
        Self(
            connecting: one.connecting + other.connecting, open: one.open + other.open, idle: one.idle + other.idle,
            waiting: one.waiting + other.waiting)
    }
}
