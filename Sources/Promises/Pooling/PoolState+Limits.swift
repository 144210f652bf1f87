// The limit over all keys, and what is counted of each.
//
// A key whose next resource only the total limit prevents is *blocked*, by its first request in line. Places go to blocked keys
// in the order of these requests. An idle resource gives up its place at once; one that returns does so if the blocked
// request is older than the next of its own key. So a key that is always busy cannot starve another one.

extension PoolState {
    /// Whether a further request gets a resource, or has one made, without waiting for others.
    func hasRoom(_ line: PoolLine) -> Bool {
        if !line.idle.isEmpty { return true }
        return line.count < limits.perKey && (members.count < limits.total || !idle.isEmpty)
    }

    /// Notes whether the total limit is all that a key waits for.
    func updateBlocked(_ line: PoolLine) {
        if limits.total == .max { return }
        let request = needsMember(line) ? line.waiting.first : nil
        if request === line.blockedRequest { return }
        blocked.remove(line)
        line.blockedRequest = request
        if request != nil { blocked.insert(line) }
    }

    /// Has resources made for blocked keys while there are places, or idle resources that give theirs up.
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
