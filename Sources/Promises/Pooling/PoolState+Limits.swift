import Reactor

// The limit over all targets, and what is counted of each.
//
// A target whose next connection only the total limit prevents is *blocked*, by its first request in line. Places go to
// blocked targets in the order of these requests. An idle connection gives up its place at once; one that returns does so if
// the blocked request is older than the next of its own target. So a target that is always busy cannot starve another one.

extension PoolState {
    /// Whether a further request gets a connection, or a connect of its own, without waiting for others.
    func hasRoom(_ line: Line) -> Bool {
        if !line.idle.isEmpty { return true }
        return line.count < limits.connections && (members.count < limits.total || !idle.isEmpty)
    }

    /// Notes whether the total limit is all that a target waits for.
    mutating func updateBlocked(_ line: Line) {
        if limits.total == .max { return }
        let request = needsConnection(line) ? line.waiting.first : nil
        if request == line.blockedRequest { return }
        if let previous = line.blockedRequest { blocked.remove(previous) }
        line.blockedRequest = request
        if let request { blocked.insert(request) }
    }

    /// Opens connections for blocked targets while there are places, or idle connections that give theirs up.
    mutating func openBlocked() -> [PoolAction] {
        var actions: [PoolAction] = []
        while let request = blocked.first, let target = requests[request]?.target, let line = lines[target] {
            if members.count >= limits.total {
                guard let member = idle.first else { break }
                drop(member)
                actions.append(.close(member))
            }
            actions.append(open(target, line))
            updateBlocked(line)
        }
        return actions
    }

    // MARK: Counts

    struct TargetCounts: Equatable {
        var members = 0
        var connecting = 0
        var idle = 0
        /// Requests in line.
        var waiting = 0
        /// Connections that are being checked, each for a request.
        var checked = 0
    }

    func counts(of target: PoolTarget) -> TargetCounts {
        guard let line = lines[target] else { return TargetCounts() }
        let (connecting, idle) = (line.connecting.count, line.idle.count)
        return TargetCounts(
            members: line.count, connecting: connecting, idle: idle, waiting: line.waiting.count,
            checked: line.count - connecting - idle - line.leased)
    }
}
