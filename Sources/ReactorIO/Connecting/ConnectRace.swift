import Promises
import Reactor
import ReactorLibc

/// A connect in progress, to one address or to the fastest of several; see `connect`. Retained by the lookup's handler,
/// and then by a pending attempt.
final class ConnectRace: CancellableWork {
    let loop: EventLoop
    private(set) lazy var promise = PromiseCore.pending(Connection.self, by: self)
    /// The target, for the error if all attempts fail. `nil` for a single address, because then its own error is
    /// reported.
    private let target: String?
    private let source: SocketAddress?
    private let options: [SocketSetting]
    private let names: any NameLookup
    private var untried: ArraySlice<SocketAddress> = []
    private var attempts: [ConnectAttempt] = []
    private var failures: [ConnectError.Failure] = []
    private var deadline: EventLoop.Timer?
    private var nextStart: EventLoop.Timer?
    private var isOver = false
    // Weak, because the lookup's handler retains this object.
    private weak var lookup: PromiseCore?

    /// The "Connection Attempt Delay" of RFC 8305, section 5.
    static var delay: Duration { .milliseconds(250) }

    init(
        to target: String?, from source: SocketAddress?, _ options: [SocketSetting], _ names: any NameLookup,
        on loop: EventLoop
    ) {
        self.target = target
        self.source = source
        self.options = options
        self.names = names
        self.loop = loop
    }

    // The lookup's handler was released uncalled, for instance because the loop ended.
    deinit { if !isOver { loopWillEnd() } }

    /// Alternates the families, each in its order, starting with the first address's family, which the system prefers.
    /// See RFC 8305, section 4.
    static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        var seen: Set<SocketAddress> = []
        let distinct = addresses.filter { seen.insert($0).inserted }
        let preferred = distinct.filter { $0.family == distinct[0].family }
        let others = distinct.filter { $0.family != distinct[0].family }
        let pairs = zip(preferred, others).flatMap { [$0, $1] }
        return pairs + preferred.dropFirst(others.count) + others.dropFirst(preferred.count)
    }

    // MARK: Start

    func start(_ timeout: Duration?, _ addresses: [SocketAddress]) {
        startDeadline(timeout)
        begin(addresses)
    }

    func start(_ timeout: Duration?, lookingUp host: String, port: UInt16) {
        startDeadline(timeout)
        // Needs no resolution delay, because getaddrinfo returns both families together.
        let found = names.addresses(of: host, port: port).done { [self] in begin(Self.interleaved($0)) }
        self.lookup = found.core
        found.catch(policy: .allErrors) { [self] in fail($0) }
    }

    private func startDeadline(_ timeout: Duration?) {
        // Creates the lazy `promise`, which must exist before anything can settle it.
        _ = promise
        deadline = timeout.map { loop.schedule(after: $0) { [self] in fail(PromiseError.timedOut) } }
    }

    private func begin(_ addresses: [SocketAddress]) {
        lookup = nil
        if isOver { return }
        untried = addresses[...]
        startNext()
    }

    private func startNext() {
        nextStart?.cancel()
        nextStart = nil
        while let address = untried.popFirst() {
            let isAllowed = names.allows(address)
            if isOver { return }
            if !isAllowed {
                let detail = "\(address), which the lookup does not allow"
                let error = SystemError(.connect, EACCES, detail: detail)
                failures.append(ConnectError.Failure(address: address, error: error))
                continue
            }
            let attempt = ConnectAttempt(address, self)
            do throws(SystemError) {
                try attempt.start(from: source, options)
            } catch {
                attempt.giveUp()
                failures.append(ConnectError.Failure(address: address, error: error))
                continue
            }
            attempts.append(attempt)
            if !untried.isEmpty { nextStart = loop.schedule(after: Self.delay) { [self] in startNext() } }
            return
        }
        if attempts.isEmpty { fail(errorOfAll) }
    }

    private var errorOfAll: any Error {
        if let target { return ConnectError(target: target, failures: failures) }
        return failures[0].error
    }

    // MARK: End

    func attemptDidFail(_ attempt: ConnectAttempt, _ error: SystemError) {
        attempts.removeAll { $0 === attempt }
        failures.append(ConnectError.Failure(address: attempt.address, error: error))
        startNext()
    }

    func attemptDidConnect(by attempt: ConnectAttempt, _ socket: Socket) {
        end()
        let connection = Connection(socket, peer: attempt.address, isUnix: attempt.address.isUnix, on: loop)
        // Overrides the default that `Connection` has set.
        for option in options where option.isNoDelay { try? socket.apply(option) }
        promise.fulfill(connection)
    }

    private func fail(_ error: any Error) {
        if isOver { return }
        end()
        promise.reject(error)
    }

    func loopWillEnd() { fail(SystemError(.connect, ECANCELED, detail: "the loop has ended")) }

    func stop(_ promise: PromiseCore) -> Bool {
        end()
        return true
    }

    private func end() {
        isOver = true
        deadline?.cancel()
        nextStart?.cancel()
        let rest = attempts
        attempts = []
        for attempt in rest { attempt.giveUp() }
        // Cancels in a job, because the cancellation may reach an inline user handler, which must not see a half-ended
        // race.
        if let lookup {
            self.lookup = nil
            if !loop.hasEnded { loop.enqueue { Promise<Void>(lookup).cancel() } }
        }
    }
}
