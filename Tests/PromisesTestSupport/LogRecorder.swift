import Glibc
import Promises
import Reactor
import TestSupport

/// Records the library's reports while it is in use.
///
/// The log handler is process-wide, and other tests run at the same time: so one handler is installed for all of them,
/// and passes each event to the recorders that claim it; an event that no recorder claims goes to the previous handler.
final class LogRecorder: Sendable {
    private let claims: @Sendable (LogEvent) -> Bool
    // Locks that ThreadSanitizer sees.
    private let events = Shared<[LogEvent]>([])
    private let reaction: @Sendable (LogEvent) -> Void

    /// Records the events that `claims` selects, on any thread, and calls `reaction` for each.
    init(
        where claims: @escaping @Sendable (LogEvent) -> Bool,
        reaction: @escaping @Sendable (LogEvent) -> Void = { _ in }
    ) {
        self.claims = claims
        self.reaction = reaction
        Self.install
        Self.all.change { $0.append(self) }
    }

    func stop() { Self.all.change { $0.removeAll { $0 === self } } }

    /// The number of recorded events.
    var count: Int { events.value.count }

    var recorded: [LogEvent] { events.value }

    /// The recorded events, as they would be printed.
    var lines: [String] { events.value.map(\.description) }

    private static let all = Shared<[LogRecorder]>([])

    private static let install: Void = {
        // Tests count.
        conf.logLimit = nil
        let before = conf.logHandler
        conf.logHandler = { event in
            let takers = all.value.filter { $0.claims(event) }
            for taker in takers {
                taker.events.change { $0.append(event) }
                taker.reaction(event)
            }
            if takers.isEmpty { before(event) }
        }
    }()
}

/// The lines that this thread logs while `body` runs.
func logged(_ body: () throws -> Void) rethrows -> [String] {
    let thread = pthread_self()
    let recorder = LogRecorder(where: { _ in pthread_equal(pthread_self(), thread) != 0 })
    defer { recorder.stop() }
    try body()
    return recorder.lines
}

/// The lines that a separate loop in virtual time logs, also while it ends.
func loggedInLoop(_ body: (EventLoop) throws -> Void) rethrows -> [String] { try logged { try inLoop(body) } }
