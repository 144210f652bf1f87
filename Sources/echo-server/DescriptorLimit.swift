import Glibc

/// How many descriptors the process may have, RLIMIT_NOFILE, and how many connections that is enough for.
struct DescriptorLimit: Equatable {
    /// The limit as it was at the start.
    var initial: Int
    /// The limit as it is now.
    var current: Int

    /// Raises the limit to the hard one, which needs no privilege. A limit that cannot be read counts as endless: the listener
    /// copes when there are no more descriptors.
    static func raise() -> DescriptorLimit {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return DescriptorLimit(initial: .max, current: .max)
        }
        let initial = Int(clamping: limit.rlim_cur)
        limit.rlim_cur = limit.rlim_max
        let isRaised = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return DescriptorLimit(initial: initial, current: isRaised ? Int(clamping: limit.rlim_max) : initial)
    }

    /// How many connections each listener may serve, and have lingering beside them.
    struct Share: Equatable {
        var maxConnections: Int
        var maxLingering: Int
    }

    /// - Parameters:
    ///   - wanted: `--max-connections`.
    ///   - listeners: how many listeners have that many each.
    ///   - others: how many descriptors everything else needs.
    /// - Returns: what is wanted, or less if the limit is too low for it; one connection at least.
    func share(of wanted: Int, listeners: Int, others: Int) -> Share {
        let most = min(max(wanted, 64), 1024)
        let available = max(current - others, 0) / max(listeners, 1)
        if available - most >= wanted { return Share(maxConnections: wanted, maxLingering: most) }
        let lingering = min(available / 5, most)
        return Share(maxConnections: max(min(available - lingering, wanted), 1), maxLingering: lingering)
    }
}
