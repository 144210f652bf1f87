import Glibc
import Promises
import Synchronization

/// Takes down what the library reports while it is in use.
///
/// The log handler is the process's, and other tests run at the same time: so one handler is installed for all of
/// them, and hands each event to the recorders that claim it; one that nobody claims goes where it went before.
final class LogRecorder: Sendable {
    private let claims: @Sendable (LogEvent) -> Bool
    private let events = Mutex<[LogEvent]>([])
    private let reaction: @Sendable (LogEvent) -> Void

    /// Records the events that `claims` picks, on whatever thread they happen, and calls `reaction` for each.
    init(
        where claims: @escaping @Sendable (LogEvent) -> Bool,
        reaction: @escaping @Sendable (LogEvent) -> Void = { _ in }
    ) {
        self.claims = claims
        self.reaction = reaction
        Self.install
        Self.all.withLock { $0.append(self) }
    }

    func stop() { Self.all.withLock { $0.removeAll { $0 === self } } }

    /// How much has been recorded.
    var count: Int { events.withLock { $0.count } }

    /// What has been recorded, as it would be printed.
    var lines: [String] { events.withLock { $0.map(\.description) } }

    private static let all = Mutex<[LogRecorder]>([])

    private static let install: Void = {
        let before = conf.logHandler
        conf.logHandler = { event in
            let takers = all.withLock { $0.filter { $0.claims(event) } }
            for taker in takers {
                taker.events.withLock { $0.append(event) }
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
