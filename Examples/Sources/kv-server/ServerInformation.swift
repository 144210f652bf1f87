import CMalloc
import Glibc
import Reactor

/// The version of redis that the answers follow.
let redisVersion = "7.0.15"

/// The numbers of executed, failed and rejected calls of a command; a call is rejected, and not executed, if its
/// request is wrong.
final class CommandStatistics {
    var calls = 0
    var failed = 0
    var rejected = 0
}

extension Server {
    func resetStatistics() {
        for count in statistics { (count.calls, count.failed, count.rejected) = (0, 0, 0) }
        store.expiredCount = 0
    }

    /// A line for each command that was called.
    fileprivate var commandLines: String {
        zip(Command.allCases, statistics).filter { $1.calls + $1.rejected > 0 }.map { command, count in
            "cmdstat_\(command):calls=\(count.calls),rejected_calls=\(count.rejected),failed_calls=\(count.failed)"
        }.joined(separator: "\n")
    }
}

extension Session {
    /// `INFO [section…]`: the fields that clients of redis read. Without names, and with `default`, all but the
    /// statistics of commands, which `all` and `everything` include.
    func serverInformation(_ words: [[UInt8]]) -> Reply {
        var names = Set(words.map(optionName))
        if names.isEmpty { names = ["default"] }
        let hasAll = !names.isDisjoint(with: ["all", "everything"])
        let sections = sections.filter { name, _ in
            hasAll || names.contains(name.lowercased()) || names.contains("default") && name != "Commandstats"
        }
        let text = sections.map { "# \($0)\n\($1)\n" }.joined(separator: "\n")
        return .bulk(text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n"))
    }

    private var sections: [(name: String, lines: String)] {
        let memory = mallinfo2()
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let keys = "db0:keys=\(store.count),expires=\(store.expiringCount),avg_ttl=0"
        return [
            (
                "Server",
                """
                redis_version:\(redisVersion)
                redis_mode:standalone
                process_id:\(getpid())
                uptime_in_seconds:\((EventLoop.current.now - server.start).components.seconds)
                """
            ),
            ("Clients", "connected_clients:\(server.openSessions)"),
            ("Memory", "used_memory:\(memory.uordblks + memory.hblkhd)"),
            (
                "Stats",
                """
                total_connections_received:\(server.acceptedSessions)
                total_commands_processed:\(server.statistics.reduce(0) { $0 + $1.calls })
                expired_keys:\(store.expiredCount)
                """
            ),
            ("Replication", "role:master\nconnected_slaves:0\nmaster_repl_offset:0"),
            ("CPU", "used_cpu_sys:\(seconds(usage.ru_stime))\nused_cpu_user:\(seconds(usage.ru_utime))"),
            ("Commandstats", server.commandLines),
            ("Keyspace", store.count == 0 ? "" : keys),
        ]
    }
}

private func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
