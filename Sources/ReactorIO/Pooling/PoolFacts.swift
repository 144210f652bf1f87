import Promises
import Reactor

extension PoolState: Inspected {
    private static var mostKeys: Int { 20 }

    /// The facts for all keys together, and then for each of the first keys.
    package var facts: [InspectedFacts] {
        let open = members.count - makingCount
        var all = InspectedFacts(
            .pool, "all keys", limit: limits.total == .max ? nil : limits.total, inUse: open - idle.count,
            free: idle.count, waiting: waiting.count, oldestWaiter: waiting.first.map { $0.waited })
        all.ends = ends
        all.others = [("making", makingCount), ("keys", lines.count)]
        let perKey = limits.perKey
        return [all]
            + lines.lazy.filter { $0.key == $0.value.key }.prefix(Self.mostKeys).map { _, line in
                let first = line.waiting.first
                return InspectedFacts(
                    .pool, "\(line.key)", limit: perKey, inUse: line.leased, free: line.idle.count,
                    waiting: line.waiting.count, oldestWaiter: first.map { $0.waited })
            }
    }
}

extension PoolRequest {
    fileprivate var waited: Int64 { EventLoop.ofCurrentThread.now.nanoseconds - since.nanoseconds }
}
