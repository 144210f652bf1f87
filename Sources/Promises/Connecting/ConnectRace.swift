import Glibc
import Reactor

/// A connect that is under way: to one address, or to the quickest of several (RFC 8305).
///
/// The addresses are tried in their order, each 250 ms after the one before, or at once when that has failed. The first
/// that answers wins, and the others are closed. While an attempt waits it holds this object; before, the handler of
/// the lookup does.
final class ConnectRace: IOProducer {
    let loop: EventLoop
    private(set) lazy var promise = IOPromise(Connection.self, self)
    /// What is connected to, for the error if all fail; without it there is one address, whose error says all.
    private let target: String?
    private let source: SocketAddress?
    private let options: [SocketSetting]
    private var untried: ArraySlice<SocketAddress> = []
    private var attempts: [ConnectAttempt] = []
    private var failures: [ConnectError.Failure] = []
    private var deadline: EventLoop.Timer?
    private var nextStart: EventLoop.Timer?
    private var isOver = false
    // Weak: it holds us, by its handler.
    private weak var lookup: PromiseCore?

    /// RFC 8305, section 5: "Connection Attempt Delay".
    static var delay: Duration { .milliseconds(250) }

    init(to target: String?, from source: SocketAddress?, _ options: [SocketSetting], on loop: EventLoop) {
        self.target = target
        self.source = source
        self.options = options
        self.loop = loop
    }

    // The handler of a lookup was let go, as it is at the end of the loop.
    deinit { if !isOver { loopWillEnd() } }

    /// Families in turn, beginning with that of the first, which is the one that the system prefers; within a family the
    /// order stays. See RFC 8305, section 4.
    static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        var seen: Set<SocketAddress> = []
        let distinct = addresses.filter { seen.insert($0).inserted }
        let preferred = distinct.filter { $0.family == distinct[0].family }
        let others = distinct.filter { $0.family != distinct[0].family }
        let pairs = zip(preferred, others).flatMap { [$0, $1] }
        return pairs + preferred.dropFirst(others.count) + others.dropFirst(preferred.count)
    }

    // MARK: Beginning

    func start(_ timeout: Duration?, _ addresses: [SocketAddress]) {
        startDeadline(timeout)
        begin(addresses)
    }

    func start(_ timeout: Duration?, lookingUp host: String, port: UInt16, _ lookup: any NameLookup) {
        startDeadline(timeout)
        // The two answers come together from getaddrinfo, so there is no delay of resolution to keep.
        let found = lookup.addresses(of: host, port: port).done { [self] in begin(Self.interleaved($0)) }
        self.lookup = found.core
        found.catch(policy: .allErrors) { [self] in fail($0) }
    }

    private func startDeadline(_ timeout: Duration?) {
        // It must be there before anything can settle it.
        _ = promise
        deadline = timeout.map { loop.schedule(after: $0) { [self] in fail(PromiseError.timedOut) } }
    }

    private func begin(_ addresses: [SocketAddress]) {
        lookup = nil
        if isOver { return }
        untried = addresses[...]
        startNext()
    }

    /// Sets out for the next address that does not fail at once.
    private func startNext() {
        nextStart?.cancel()
        nextStart = nil
        while let address = untried.popFirst() {
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

    // MARK: Ending

    func attemptDidFail(_ attempt: ConnectAttempt, _ error: SystemError) {
        attempts.removeAll { $0 === attempt }
        failures.append(ConnectError.Failure(address: attempt.address, error: error))
        startNext()
    }

    func attemptDidConnect(by attempt: ConnectAttempt, _ socket: Socket) {
        end()
        let connection = Connection(socket, peer: attempt.address, isUnix: attempt.address.isUnix, on: loop)
        // A connection begins with this one as it thinks best.
        for option in options where option.isNoDelay { try? socket.apply(option) }
        promise.fulfill(connection)
    }

    private func fail(_ error: any Error) {
        if isOver { return }
        end()
        promise.reject(error)
    }

    func loopWillEnd() { fail(SystemError(.connect, ECANCELED, detail: "the loop has ended")) }

    /// The promise was cancelled.
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
        // As a job: it may be cancelled down to an inline handler of a user's, which must not find us half ended.
        if let lookup {
            self.lookup = nil
            if !loop.hasEnded { loop.enqueue { Promise<Void>(lookup).cancel() } }
        }
    }
}
