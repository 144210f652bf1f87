import Promises
import Reactor

extension PoolState {
    /// The time of the next `expire`; `distantFuture` for never.
    var nextDeadline: LoopInstant {
        var next = LoopInstant.distantFuture
        if let limit = limits.idleTimeout, case .idle(let since)? = idle.first?.use { next = since.advanced(by: limit) }
        if let limit = limits.maxLifetime, let first = aging.first {
            next = min(next, first.opened.advanced(by: limit))
        }
        if let limit = limits.waitTimeout, let first = waiting.first {
            next = min(next, first.since.advanced(by: limit))
        }
        return next
    }

    /// True when `expire` will reject a waiting request.
    var hasWaitDeadline: Bool { limits.waitTimeout != nil && !waiting.isEmpty }

    /// Closes resources that have been idle too long, and unused ones that are too old. Rejects requests that have
    /// waited too long.
    func expire(at now: LoopInstant) {
        if let limit = limits.idleTimeout {
            while let first = idle.first, case .idle(let since) = first.use, since.advanced(by: limit) <= now {
                drop(first)
                actions.append(.close(first))
            }
        }
        if let limit = limits.maxLifetime {
            while let first = aging.first, first.opened.advanced(by: limit) <= now {
                aging.remove(first)
                first.isOld = true
                guard case .idle = first.use else { continue }
                drop(first)
                actions.append(.close(first))
            }
        }
        if let limit = limits.waitTimeout {
            while let first = waiting.first, first.since.advanced(by: limit) <= now {
                withdraw(first)
                let (most, waited) = (min(limits.perKey, limits.total), first.since.duration(to: now))
                actions.append(.reject(first, PoolError.timedOut(key: first.line.key, limit: most, waited: waited)))
                cancelSurplus(first.line)
                advance(first.line)
            }
        }
    }

    /// Refuses further requests. Waiting ones are still served.
    func drain() {
        if phase == .open { phase = .draining }
        closeIdle()
    }

    /// Refuses further requests, and rejects waiting ones. Lent resources are closed when they return.
    func close() {
        phase = .closed
        closeIdle()
        while let request = waiting.first {
            withdraw(request)
            actions.append(.reject(request, PoolError.closed(key: request.line.key)))
        }
        for member in members.all where member.isMaking {
            drop(member)
            actions.append(.cancelMake(member))
        }
    }

    /// Closes like `close`, and also ends lent resources.
    func abort() {
        close()
        while let member = members.first {
            drop(member)
            actions.append(.abort(member))
        }
    }

    private func closeIdle() {
        while let member = idle.first {
            drop(member)
            actions.append(.close(member))
        }
    }
}
