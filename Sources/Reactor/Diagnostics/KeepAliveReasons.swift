extension EventLoop {
    /// What `run()` does not end for, one line each in the `description`: for the question why a server does not exit.
    ///
    /// ```
    /// 2 timers, the nearest due in 29.9 seconds
    /// descriptor 7 for reading: Connection(127.0.0.1:54321)
    /// hold at App/Server.swift:12
    /// ```
    public var keepAliveReasons: Reasons {
        assertOwner()
        return Reasons(
            readyJobs: ready.count + mailbox.count, undeliveredEvents: poller.undeliveredCount,
            timers: timers.referenced, unreferencedTimers: timers.count - timers.referenced,
            nearestTimer: nextDeadline.map { now.duration(to: $0) },
            descriptors: poller.watched().map {
                .init(number: $0.fd, interest: $0.interest, isReferenced: $0.isReferenced, user: $0.handler.label)
            },
            signals: signals.handlers.map {
                .init(number: $0.signal, isReferenced: $0.isReferenced, origin: $0.origin)
            },
            holds: holds.values.sorted { ($0.file, $0.line) < ($1.file, $1.line) },
            externalWork: externalWork.load(ordering: .relaxed))
    }

    /// See `keepAliveReasons`. What is unreferenced stands among it, and says so.
    public struct Reasons: Hashable, Sendable {
        /// Jobs that are ready, also those that other threads have submitted.
        public let readyJobs: Int
        /// Events that the kernel has reported, and the turn that has fetched them has not yet delivered.
        public let undeliveredEvents: Int
        /// Timers that keep the loop alive.
        public let timers: Int
        /// Timers that do not.
        public let unreferencedTimers: Int
        /// How long it is until the first of all timers fires; below zero if it is overdue, `nil` without one.
        public let nearestTimer: Duration?
        /// Descriptors that are waited for, in the order of their numbers.
        public let descriptors: [Descriptor]
        /// Signal watches, the oldest first.
        public let signals: [Signal]
        /// The lines that have called `hold()`.
        public let holds: [CallSite]
        /// Jobs of pools, and async tasks.
        public let externalWork: Int

        /// A descriptor that is waited for.
        public struct Descriptor: Hashable, Sendable {
            /// Its number.
            public let number: CInt
            /// For what.
            public let interest: Interest
            /// Whether it keeps the loop alive.
            public let isReferenced: Bool
            /// Who waits: `watch at App/Server.swift:12`, or the connection or listener.
            public let user: String
        }

        /// A watch of a signal.
        public struct Signal: Hashable, Sendable {
            /// The signal.
            public let number: CInt
            /// Whether it keeps the loop alive.
            public let isReferenced: Bool
            /// The call of `onSignal`.
            public let origin: CallSite
        }

        /// Whether there is none: `run()` would end.
        public var isEmpty: Bool {
            readyJobs + undeliveredEvents + timers + holds.count + externalWork == 0
                && !descriptors.contains { $0.isReferenced } && !signals.contains { $0.isReferenced }
        }
    }
}

extension EventLoop.Reasons: CustomStringConvertible {
    /// One line a reason; `nothing` if there is none.
    public var description: String {
        var lines: [String] = []
        func add(_ count: Int, _ one: String, _ rest: String = "") {
            if count > 0 { lines.append("\(count) \(one)\(count == 1 ? "" : "s")\(rest)") }
        }
        let nearest = nearestTimer.map { $0 > .zero ? ", the nearest due in \($0)" : ", the nearest due" } ?? ""
        add(readyJobs, "ready job")
        add(undeliveredEvents, "event", " on the way")
        add(timers, "timer", nearest)
        add(unreferencedTimers, "timer", (timers == 0 ? nearest : "") + " (unreferenced)")
        lines += descriptors.map(\.description) + signals.map(\.description) + holds.map { "hold at \($0)" }
        add(externalWork, "piece", " of work on other threads")
        return lines.isEmpty ? "nothing" : lines.joined(separator: "\n")
    }
}

extension EventLoop.Reasons.Descriptor: CustomStringConvertible {
    /// `descriptor 7 for reading: Connection(127.0.0.1:54321)`
    public var description: String {
        let names = (interest.contains(.reading) ? ["reading"] : []) + (interest.contains(.writing) ? ["writing"] : [])
        return "descriptor \(number) for \(names.joined(separator: " and ")): \(user)"
            + (isReferenced ? "" : " (unreferenced)")
    }
}

extension EventLoop.Reasons.Signal: CustomStringConvertible {
    /// `signal 15: watch at App/Server.swift:12`
    public var description: String { "signal \(number): watch at \(origin)\(isReferenced ? "" : " (unreferenced)")" }
}
