import ReactorLibc
import Reactor

/// The process's limit on open descriptors, RLIMIT_NOFILE, and the connections that it allows.
struct DescriptorLimit: Equatable {
    /// The limit at the program's start.
    var initial: Int
    /// The current limit.
    var current: Int
    /// The number of descriptors open at the start: standard streams and inherited ones.
    var used = 3

    /// The error for a limit that leaves no descriptor for a client, in one line for the user.
    struct TooLow: Error, CustomStringConvertible {
        let limit: DescriptorLimit
        let needed: Int

        var description: String {
            "the limit of descriptors is \(limit.current) (RLIMIT_NOFILE, \(limit.initial) at the start), "
                + "and serving one client takes \(needed)"
        }
    }

    /// Raises the limit to the hard limit, which needs no privilege. An unreadable limit counts as unlimited, because
    /// the listener copes without descriptors.
    static func raise() -> DescriptorLimit {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return DescriptorLimit(initial: .max, current: .max)
        }
        // Opens its descriptor, if it needs one, before the count.
        _ = LineWriter.standardError
        let used = openDescriptors ?? 3
        let initial = Int(clamping: limit.rlim_cur)
        limit.rlim_cur = limit.rlim_max
        let isRaised = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return DescriptorLimit(
            initial: initial, current: isRaised ? Int(clamping: limit.rlim_max) : initial, used: used)
    }

    /// The number of open descriptors, if known.
    private static var openDescriptors: Int? {
        let fd = FileSyscalls.real.open("/proc/self/fd", O_RDONLY | O_DIRECTORY, 0)
        guard fd >= 0, let folder = fdopendir(CInt(fd)) else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Without the folder's own descriptor, `.` and `..`.
        return count - 3
    }

    /// The numbers of connections that each listener may serve, and may also let linger.
    struct Share: Equatable {
        var maxConnections: Int
        var maxLingering: Int
    }

    /// - Parameters:
    ///   - wanted: the value of `--max-connections`.
    ///   - listeners: the number of listeners, each with that many connections.
    ///   - others: the number of descriptors for the rest of the program.
    ///   - spare: the number of these that are dispensable.
    /// - Returns: the wanted number of connections, or as many as the limit allows, at least one.
    /// - Throws: `TooLow` if there is no descriptor for a client.
    func share(of wanted: Int, listeners: Int, others: Int, spare: Int = 0) throws(TooLow) -> Share {
        let needed = used + others - spare + 1
        if current < needed { throw TooLow(limit: self, needed: needed) }
        let most = min(max(wanted, 64), 1024)
        let available = max(current - used - others, 0) / max(listeners, 1)
        if available - most >= wanted { return Share(maxConnections: wanted, maxLingering: most) }
        let lingering = min(available / 5, most)
        return Share(maxConnections: max(min(available - lingering, wanted), 1), maxLingering: lingering)
    }
}
