import Reactor

// How time and the end of a pool act on its connections and requests.

extension PoolState {
    /// When `expire` next has something to do; `distantFuture` if never.
    var nextDeadline: LoopInstant {
        var next = LoopInstant.distantFuture
        if let first = idle.first, let limit = limits.idleTime, case .idle(let since)? = members[first]?.use {
            next = since.advanced(by: limit)
        }
        if let first = aging.first, let limit = limits.lifetime, let member = members[first] {
            next = min(next, member.opened.advanced(by: limit))
        }
        if let first = waiting.first, let limit = limits.waitTime, let request = requests[first] {
            next = min(next, request.since.advanced(by: limit))
        }
        return next
    }

    /// Whether a request waits that `expire` will reject.
    var hasWaitDeadline: Bool { limits.waitTime != nil && !waiting.isEmpty }

    /// Closes what has been idle too long, or is too old and not in use, and rejects requests that have waited too long.
    mutating func expire(at now: LoopInstant) -> [PoolAction] {
        var actions: [PoolAction] = []
        if let limit = limits.idleTime {
            while let first = idle.first, case .idle(let since)? = members[first]?.use, since.advanced(by: limit) <= now
            {
                drop(first)
                actions.append(.close(first))
            }
        }
        if let limit = limits.lifetime {
            while let first = aging.first, let member = members[first], member.opened.advanced(by: limit) <= now {
                aging.remove(first)
                if case .idle = member.use {
                    drop(first)
                    actions.append(.close(first))
                } else {
                    members[first]?.isOld = true
                }
            }
        }
        if let limit = limits.waitTime {
            while let first = waiting.first, let request = requests[first], request.since.advanced(by: limit) <= now {
                let waited = request.since.duration(to: now)
                actions += withdraw(first) + [.reject(first, .timedOut(request.target, waited: waited))]
                actions += cancelSurplus(request.target) + advance(request.target)
            }
        }
        return actions
    }

    /// Takes no further requests. Those that wait are still served.
    mutating func drain() -> [PoolAction] {
        if phase == .open { phase = .draining }
        return closeIdle()
    }

    /// Takes no further requests, and rejects those that wait. Connections that are lent are closed when they return.
    mutating func close() -> [PoolAction] {
        phase = .closed
        var actions = closeIdle()
        while let request = waiting.first, let target = requests[request]?.target {
            actions += withdraw(request) + [.reject(request, .closed(target))] + cancelSurplus(target)
        }
        for member in members.keys.sorted() {
            guard case .connecting? = members[member]?.use else { continue }
            drop(member)
            actions.append(.cancelConnect(member))
        }
        return actions
    }

    /// As `close`, and ends the connections that are lent, too.
    mutating func abort() -> [PoolAction] {
        var actions = close()
        for member in members.keys.sorted() {
            drop(member)
            actions.append(.abort(member))
        }
        return actions
    }

    private mutating func closeIdle() -> [PoolAction] {
        var actions: [PoolAction] = []
        while let member = idle.first {
            drop(member)
            actions.append(.close(member))
        }
        return actions
    }
}
