import Promises
import Reactor
import ReactorIO

/// Chooses a backend for each client, and checks all of them.
final class Balancer {
    private let backends: [Backend]
    private let balancing: Balancing
    private let rules: HealthRules
    /// The backend at which the next choice begins.
    private var start = 0

    init(_ addresses: [String], _ balancing: Balancing, _ rules: HealthRules) {
        backends = addresses.map(Backend.init)
        self.balancing = balancing
        self.rules = rules
    }

    /// The next backend, `nil` if all were tried. One that is down is chosen only if none that is up is left: the
    /// checks may be wrong, and refusing the client for certain would be worse.
    func next(besides tried: [Backend]) -> Backend? {
        let inTurn = backends[start...] + backends[..<start]
        start = (start + 1) % backends.count
        let untried = inTurn.filter { backend in !tried.contains { $0 === backend } }
        let up = untried.filter(\.isUp)
        let candidates = up.isEmpty ? untried : up
        switch balancing {
        case .roundRobin: return candidates.first
        // The first of those with equally few connections, which are rotated.
        case .leastConnections: return candidates.min { $0.connections < $1.connections }
        }
    }

    /// Connects to a backend for a client. A failure counts as a failed check, so that a dead backend is noticed before
    /// the next check; a success does not count, since `rise` requires several checks.
    func connect(to backend: Backend, timeout: Duration) -> Promise<Connection> {
        ReactorIO.connect(to: backend.address, timeout: timeout, options: [.set(.keepAlive, to: true)])
            .tapError { error in self.noteFailure(of: backend, error) }
    }

    /// Records that a backend failed to serve a client.
    func noteFailure(of backend: Backend, _ error: any Error) {
        if backend.isUp, !isShortageHere(error), !error.isCancelled { backend.note(error, rules) }
    }

    // MARK: Checks

    func startChecks() {
        EventLoop.current.schedule(every: rules.interval) { [self] in
            for backend in backends where !backend.isBeingChecked { check(backend) }
        }.unref()
    }

    private func check(_ backend: Backend) {
        backend.isBeingChecked = true
        ReactorIO.connect(to: backend.address, timeout: rules.timeout)
            .done { connection in
                connection.close(linger: .zero)
                backend.note(nil, self.rules)
            }
            .ensure { backend.isBeingChecked = false }
            .catch { error in
                if !isShortageHere(error) { backend.note(error, self.rules) }
            }
    }
}
