/// The reasons that keep a loop alive; see `EventLoop.keepAliveReasons`. Unreferenced watches and timers are included, and
/// marked.
public struct KeepAliveReasons: Hashable, Sendable {
    /// Jobs that are ready, including those that other threads have submitted.
    public let readyJobs: Int
    /// Events that the kernel has reported, but that the current turn has not delivered yet.
    public let undeliveredEvents: Int
    /// Timers that keep the loop alive.
    public let timers: Int
    /// Timers that do not keep the loop alive.
    public let unreferencedTimers: Int
    /// The time until the earliest of all timers fires; negative if it is overdue, `nil` if there is no timer.
    public let nearestTimer: Duration?
    /// Watched descriptors, in the order of their numbers.
    public let descriptors: [Descriptor]
    /// Signal watches, the oldest first.
    public let signals: [Signal]
    /// The source lines that have called `hold()`.
    public let holds: [CallSite]
    /// Jobs of pools and async tasks that the loop waits for.
    public let externalWork: Int

    /// A watched descriptor.
    public struct Descriptor: Hashable, Sendable {
        /// The number of the descriptor.
        public let number: CInt
        /// The directions in which it is watched.
        public let interest: Interest
        /// Whether it keeps the loop alive.
        public let isReferenced: Bool
        /// The object that watches it: `watch at App/Server.swift:12`, or a connection or listener.
        public let user: String
    }

    /// A signal watch.
    public struct Signal: Hashable, Sendable {
        /// The number of the signal.
        public let number: CInt
        /// Whether it keeps the loop alive.
        public let isReferenced: Bool
        /// The source line that called `onSignal`.
        public let callSite: CallSite
    }

    /// Whether there are no reasons, so that `run()` would return.
    public var isEmpty: Bool {
        readyJobs + undeliveredEvents + timers + holds.count + externalWork == 0
            && !descriptors.contains { $0.isReferenced } && !signals.contains { $0.isReferenced }
    }
}

extension KeepAliveReasons: CustomStringConvertible {
    /// One line for each reason; `nothing` if there is none.
    public var description: String {
        var lines: [String] = []
        func add(_ count: Int, _ one: String, _ rest: String = "") {
            if count > 0 { lines.append("\(count) \(one)\(count == 1 ? "" : "s")\(rest)") }
        }
        let nearest = nearestTimer.map { $0 > .zero ? ", the nearest due in \($0)" : ", the nearest due" } ?? ""
        add(readyJobs, "ready job")
        add(undeliveredEvents, "event", " not delivered yet")
        add(timers, "timer", nearest)
        add(unreferencedTimers, "timer", (timers == 0 ? nearest : "") + " (unreferenced)")
        lines += descriptors.map(\.description) + signals.map(\.description) + holds.map { "hold at \($0)" }
        add(externalWork, "piece", " of work on other threads")
        return lines.isEmpty ? "nothing" : lines.joined(separator: "\n")
    }
}

extension KeepAliveReasons.Descriptor: CustomStringConvertible {
    /// `descriptor 7 for reading: Connection(127.0.0.1:54321)`
    public var description: String {
        let directions: [(Interest, String)] = [
            (.reading, "reading"), (.writing, "writing"), (.peerGone, "the peer's end"),
        ]
        let names = directions.filter { !interest.isDisjoint(with: $0.0) }.map(\.1)
        return "descriptor \(number) for \(names.joined(separator: " and ")): \(user)"
            + (isReferenced ? "" : " (unreferenced)")
    }
}

extension KeepAliveReasons.Signal: CustomStringConvertible {
    /// `signal 15: watch at App/Server.swift:12`
    public var description: String { "signal \(number): watch at \(callSite)\(isReferenced ? "" : " (unreferenced)")" }
}
