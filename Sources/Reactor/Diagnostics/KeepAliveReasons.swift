/// Everything that keeps a loop running. Unreferenced watches and timers are marked.
package struct KeepAliveReasons: Sendable, CustomStringConvertible {
    package let readyJobs: Int
    package let undeliveredEvents: Int
    package let timers: Int
    package let unreferencedTimers: Int
    /// The time until the earliest timer fires; only referenced timers count if there are any. Negative if overdue,
    /// `nil` without timers.
    package let nearestTimer: Duration?
    /// In ascending order.
    package let descriptors: [WatchedDescriptor]
    /// Oldest first.
    package let signals: [Signal]
    package let holds: [CallSite]
    /// The number of pool jobs and async tasks that the loop waits for.
    package let externalWork: Int

    package struct WatchedDescriptor {
        package let number: CInt
        package let interest: Interest
        package let isReferenced: Bool
        /// For example `watch at App/Server.swift:12`, a connection or a listener.
        package let user: String

        /// `descriptor 7 for reading: Connection(127.0.0.1:54321)`
        fileprivate var line: String {
            let directions: [(Interest, String)] = [
                (.reading, "reading"), (.writing, "writing"), (.peerGone, "the peer's end"),
            ]
            let names = directions.filter { !interest.isDisjoint(with: $0.0) }.map(\.1)
            return "descriptor \(number) for \(names.joined(separator: " and ")): \(user)"
                + (isReferenced ? "" : " (unreferenced)")
        }
    }

    package struct Signal {
        package let number: CInt
        package let isReferenced: Bool
        package let callSite: CallSite

        /// `signal 15: watch at App/Server.swift:12`
        fileprivate var line: String {
            "signal \(number): watch at \(callSite)\(isReferenced ? "" : " (unreferenced)")"
        }
    }

    package var isEmpty: Bool {
        readyJobs + undeliveredEvents + timers + holds.count + externalWork == 0
            && !descriptors.contains { $0.isReferenced } && !signals.contains { $0.isReferenced }
    }

    /// One line per reason, or `nothing`.
    package var description: String {
        var lines: [String] = []
        func add(_ count: Int, _ one: String, _ rest: String = "") {
            if count > 0 { lines.append("\(count) \(one)\(count == 1 ? "" : "s")\(rest)") }
        }
        let nearest = nearestTimer.map { $0 > .zero ? ", the nearest due in \($0)" : ", the nearest due" } ?? ""
        add(readyJobs, "ready job")
        add(undeliveredEvents, "event", " not delivered yet")
        add(timers, "timer", nearest)
        add(unreferencedTimers, "timer", (timers == 0 ? nearest : "") + " (unreferenced)")
        lines += descriptors.map(\.line) + signals.map(\.line) + holds.map { "hold at \($0)" }
        add(externalWork, "piece", " of work on other threads")
        return lines.isEmpty ? "nothing" : lines.joined(separator: "\n")
    }
}
