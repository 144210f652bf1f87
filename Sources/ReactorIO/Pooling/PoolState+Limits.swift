// The limit over all keys.
//
// A key is *blocked*, by its first request in line, if only the total limit prevents its next resource. Places go to
// blocked keys in the order of these requests. An idle resource gives up its place at once; a returning one does so if
// the blocked request is older than the next of its own key. So a busy key cannot starve another one.

extension PoolState {
    /// Whether a further request gets a resource, or has one made, without waiting for others.
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

    /// Makes resources for blocked keys while there are places, or idle resources that give theirs up.
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
