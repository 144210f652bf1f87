// The total limit, over all keys.
//
// If only the total limit prevents a key's next resource, the key's first request in line *blocks* the key. Blocked
// keys get places in the order of those requests. An idle resource gives up its place at once. A returning resource
// does so if the blocked request is older than the next request for its own key, so a busy key cannot starve another.

extension PoolState {
    /// Returns true if a further request would not wait behind others.
    func hasRoom(_ line: PoolLine) -> Bool {
        if !line.idle.isEmpty { return true }
        return line.count < limits.perKey && (members.count < limits.total || !idle.isEmpty)
    }

    /// Keeps a key in `blocked` while only the total limit blocks it.
    func updateBlocked(_ line: PoolLine) {
        if limits.total == .max { return }
        let request = needsMember(line) ? line.waiting.first : nil
        if request === line.blockedRequest { return }
        blocked.remove(line)
        line.blockedRequest = request
        if request != nil { blocked.insert(line) }
    }

    /// Makes resources for blocked keys while there are free places or idle resources.
    func makeForBlocked() {
        while let line = blocked.first {
            if members.count >= limits.total {
                guard let member = idle.first else { return }
                drop(member)
                actions.append(.close(member))
            }
            make(line)
            updateBlocked(line)
        }
    }
}
