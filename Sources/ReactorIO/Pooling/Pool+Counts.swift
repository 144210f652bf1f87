import Promises

/// The numbers of resources and requests in a pool.
public struct PoolCounts: Hashable, Sendable {
    /// Resources that are being made.
    public let making: Int
    /// Resources that have been made: in use, idle, or sending queued bytes after their last request.
    public let open: Int
    /// Resources that wait for their next request.
    public let idle: Int
    /// Requests without a resource.
    public let waiting: Int
}

extension Pool {
    /// The counts for all keys together, for metrics. Takes constant time.
    public var counts: PoolCounts {
        loop.assertOwner()
        return PoolCounts(
            making: state.makingCount, open: state.members.count - state.makingCount, idle: state.idle.count,
            waiting: state.waiting.count)
    }

    /// The counts for each key with resources or requests, for metrics. Takes time linear in the number of keys.
    package var countsByKey: [PoolKey: PoolCounts] {
        loop.assertOwner()
        return Dictionary(state.lines.values.map { ($0.key, $0.counts) }, uniquingKeysWith: { counts, _ in counts })
    }
}

extension PoolLine {
    var checked: Int { count - making.count - idle.count - leased }

    fileprivate var counts: PoolCounts {
        PoolCounts(
            making: making.count, open: count - making.count, idle: idle.count, waiting: waiting.count + checked)
    }
}
