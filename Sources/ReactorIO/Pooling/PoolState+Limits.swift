// The limit over all keys.
//
// The first request in line *blocks* its key if only the total limit prevents the key's next resource. Blocked keys get
// places in the order of these requests. An idle resource gives up its place at once. A returning one does if the
// blocked request is older than the next of its own key, so a busy key cannot starve another.

extension PoolState {
    /// Returns true when a further request would not wait for others.
    func hasRoom(_ line: PoolLine) -> Bool {
        if !line.idle.isEmpty { return true }
        return line.count < limits.perKey && (members.count < limits.total || !idle.isEmpty)
    }

    /// Updates whether only the total limit blocks a key.
    func updateBlocked(_ line: PoolLine) {
        if limits.total == .max { return }
        let request = needsMember(line) ? line.waiting.first : nil
        if request === line.blockedRequest { return }
        blocked.remove(line)
        line.blockedRequest = request
        if request != nil { blocked.insert(line) }
    }

    /// Makes resources for blocked keys while there are places or idle resources.
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
