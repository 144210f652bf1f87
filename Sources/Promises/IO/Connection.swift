import Glibc
import Reactor

/// A TCP connection on this thread's loop, made by `connect(to:)` or by a `Listener`.
///
/// ```swift
/// connection.read().then { outcome -> Promise<Void> in
///     guard case .bytes(let bytes) = outcome else { return .value }
///     return connection.write(bytes)
/// }.ensure { connection.close() }
/// ```
///
/// Reading and writing are independent of each other. Nothing is read before it is asked for, and an idle connection
/// holds no buffer. A pending operation keeps the connection alive; without one, letting go of the last reference
/// closes it.
///
/// Three verbs end it: `shutdownWrite()` ends this side and goes on reading (half-close), `close()` delivers what is
/// queued and then ends, `abort()` drops everything and resets.
public final class Connection: IOProducer {
    // What every message touches comes first and together, in two cache lines: at a thousand connections the memory that
    // a message reads costs more than the instructions.
    //
    // `@exclusivity(unchecked)`: one thread, and no field is being changed while anything is called that could come back
    // here. Checked, they cost nine calls of the runtime a message.
    let socket: Socket
    let loop: EventLoop
    @exclusivity(unchecked) private var pendingRead: (promise: Core, limit: Int)?
    @exclusivity(unchecked) private var outgoing: WriteQueue?
    @exclusivity(unchecked) private var interest: Interest = []
    @exclusivity(unchecked) private(set) var phase = Phase.open
    @exclusivity(unchecked) private var hasEnded = false
    @exclusivity(unchecked) private var hasFailed = false
    @exclusivity(unchecked) private var writeSide = WriteSide.open
    @exclusivity(unchecked) private var lastActivity = EventLoop.Instant(nanoseconds: 0)
    /// Bytes that have been read so far.
    @exclusivity(unchecked) public private(set) var bytesReceived = 0
    /// Bytes that the kernel has taken so far.
    @exclusivity(unchecked) public private(set) var bytesSent = 0

    /// The peer's address; `nil` if the kernel no longer knew it.
    public let peerAddress: SocketAddress?
    /// How many bytes of writes may wait for the kernel; a write that finds as many waiting is rejected with `ENOBUFS`.
    /// Whoever waits for each write before the next never comes near it. 4 MiB; a single write may be larger.
    public var writeQueueLimit = 4 << 20
    // The first error of the socket. The kernel tells it once and then pretends an orderly end.
    private var failure: SystemError? {
        didSet { hasFailed = failure != nil }
    }
    private var ending: Core?
    private var closing: Core?
    private var closingTimer: EventLoop.Timer?
    private var discarded = 0
    private var idleTimer: EventLoop.Timer?
    // The bytes that had gone through when the idle time-out first seemed to be due.
    private var idleCheck: Int?

    private enum WriteSide { case open, ending, ended }

    enum Phase {
        case open
        /// `close()` was called: what is queued is going out.
        case flushing
        /// All is sent, and the end too: input is read and thrown away until the peer ends.
        case lingering
        case closed
    }

    init(_ socket: Socket, peer: SocketAddress?, on loop: EventLoop) {
        self.socket = socket
        self.loop = loop
        peerAddress = peer
        socket.setNoDelay()
    }

    // Without a pending operation nobody waits for anything, and the poller does not hold us.
    deinit { if phase != .closed { release() } }

    /// The address of this side; `nil` once the connection is closed. One system call.
    public var localAddress: SocketAddress? { phase == .closed ? nil : socket.localAddress }

    /// Whether `close` or `abort` has been called.
    public var isClosed: Bool { phase != .open }

    /// Bytes of writes that the kernel has not taken yet.
    public var queuedBytes: Int { outgoing?.count ?? 0 }

    // MARK: Reading

    @usableFromInline
    func startRead(_ limit: Int) -> Guarantee<ReadOutcome> {
        if phase != .open { return .failed(EBADF, "the connection is closed") }
        if limit < 1 { return .failed(EINVAL, "upTo: \(limit)") }
        if pendingRead != nil { return .failed(EBUSY, "another read is waiting") }
        if hasEnded { return .value(failure.map(ReadOutcome.failed) ?? .end) }
        let core = IOPromise(ReadOutcome.self, self)
        pendingRead = (core, limit)
        updateInterest()
        return Guarantee(core)
    }

    /// A read was cancelled: what comes is the next one's. Or a write, of which the kernel has nothing yet.
    func stop(_ promise: Core) -> Bool {
        guard pendingRead?.promise === promise else { return withdrawWrite(promise) }
        pendingRead = nil
        updateInterest()
        return true
    }

    private func readNow() {
        guard let (promise, limit) = pendingRead else { return }
        let buffer = loop.scratch
        let count = loop.kernel.receive(socket.fd, buffer.baseAddress!, min(limit, buffer.count))
        if count == -Int(EAGAIN) { return }
        pendingRead = nil
        let outcome: ReadOutcome
        if count > 0 {
            lastActivity = loop.turnTime
            bytesReceived += count
            outcome = .bytes([UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count])))
        } else {
            hasEnded = true
            if count < 0 && failure == nil { failure = SystemError(.receive, CInt(-count)) }
            outcome = failure.map(ReadOutcome.failed) ?? .end
        }
        promise.fulfill(outcome)
        if count < 0 { failWrites() }
    }

    // MARK: Writing

    /// What every form of `write` comes to.
    @usableFromInline
    func send(_ bytes: [UInt8]) -> Promise<Void> {
        if let refusal { return Promise(error: refusal) }
        var sent = 0
        if let outgoing {
            guard outgoing.count < writeQueueLimit else {
                let detail = "\(outgoing.count) bytes are waiting, the limit is \(writeQueueLimit)"
                return Promise(error: SystemError(.send, ENOBUFS, detail: detail))
            }
        } else {
            if bytes.isEmpty { return .value }
            let result = bytes.withUnsafeBytes { loop.kernel.send(socket.fd, $0.baseAddress!, $0.count) }
            if result < 0 && result != -Int(EAGAIN) {
                fail(SystemError(.send, CInt(-result)))
                return Promise(error: failure!)
            }
            sent = max(result, 0)
            if sent > 0 { didSend(sent) }
            if sent == bytes.count { return .value }
        }
        let core = IOPromise(Void.self, self)
        let queue = outgoing ?? WriteQueue()
        queue.append(bytes, from: sent, core)
        outgoing = queue
        updateInterest()
        return Promise(core)
    }

    @inline(__always)
    private func didSend(_ count: Int) {
        bytesSent += count
        lastActivity = loop.turnTime
    }

    /// Why a write cannot be taken.
    private var refusal: SystemError? {
        if phase != .open { return SystemError(.send, EBADF, detail: "the connection is closed") }
        if hasFailed { return failure }
        if writeSide == .open { return nil }
        return SystemError(.send, EPIPE, detail: "this side was shut down")
    }

    /// Sends what is queued, and the end when nothing is left. At most 16 segments a turn, so that one connection with a
    /// fast reader does not hold up the others.
    private func flush() {
        guard let queue = outgoing else { return }
        for _ in 0..<16 {
            let result = queue.withNext { loop.kernel.send(socket.fd, $0.baseAddress!, $0.count) } ?? 0
            if result == -Int(EAGAIN) { return }
            if result < 0 { return fail(SystemError(.send, CInt(-result))) }
            didSend(result)
            queue.advance(result)
            // All are taken out first: an inline handler of one may end the connection, and the others were sent all the
            // same.
            for promise in queue.takeFinished() { promise.fulfill(()) }
            guard outgoing === queue else { return }
            if queue.isEmpty { break }
        }
        if queue.isEmpty { allIsSent() }
    }

    private func allIsSent() {
        outgoing = nil
        if writeSide == .ending { endWriteSide() }
        if phase == .flushing { linger() }
    }

    private func withdrawWrite(_ promise: Core) -> Bool {
        guard let outgoing, outgoing.withdraw(promise) else { return false }
        if outgoing.isEmpty { allIsSent() }
        updateInterest()
        return true
    }

    /// Ends this side: the peer reads everything that was queued and then the end; reading goes on. Fulfilled when the
    /// end has been handed to the kernel. Again: the same, and nothing happens. See shutdown(2), SHUT_WR.
    @discardableResult
    @inlinable @inline(__always)
    public func shutdownWrite(file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        Promise(startShutdown().core.traced(root: "shutdownWrite", Promise<Void>.self, file, line))
    }

    @usableFromInline
    func startShutdown() -> Promise<Void> {
        if phase != .open { return Promise(error: SystemError(.shutdown, EBADF, detail: "the connection is closed")) }
        if let failure { return Promise(error: failure) }
        if let ending { return Promise(ending) }
        if writeSide == .open {
            writeSide = .ending
            if outgoing != nil {
                let core = Core(root: Void.self)
                ending = core
                return Promise(core)
            }
            endWriteSide()
        }
        return .value
    }

    private func endWriteSide() {
        if writeSide == .ended { return }
        writeSide = .ended
        // ENOTCONN: the peer has reset. Whoever reads or writes is told.
        _ = loop.kernel.shutdown(socket.fd, CInt(SHUT_WR))
        let promise = ending
        ending = nil
        promise?.fulfill(())
    }

    // MARK: Failing

    /// The socket is beyond use for writing. What the peer sent before may still be read.
    private func fail(_ error: SystemError) {
        if failure == nil { failure = error }
        failWrites()
        if phase == .open { updateInterest() } else { release() }
    }

    private func failRead(_ error: SystemError) {
        guard let (promise, _) = pendingRead else { return }
        pendingRead = nil
        promise.fulfill(ReadOutcome.failed(error))
    }

    private func failWrites() {
        guard let failure else { return }
        let promises = (outgoing?.promises ?? []) + (ending.map { [$0] } ?? [])
        outgoing = nil
        ending = nil
        for promise in promises { promise.reject(failure) }
    }

    // MARK: Closing

    /// How long a connection that is being closed may make no progress before it is reset.
    static var closingPatience: Duration { .seconds(5) }
    /// How much input a closing connection reads and throws away.
    static var closingAppetite: Int { 1 << 20 }

    /// Delivers what is queued, then the end, and closes. Fulfilled when the descriptor is closed.
    ///
    /// A read that waits fails with `ECANCELED`; later operations fail with `EBADF`. Input that is still coming is read and
    /// thrown away until the peer ends too, since closing a socket with unread input makes the kernel send a
    /// reset, which destroys what the peer has not read yet. A peer that takes nothing and ends nothing for
    /// 5 seconds, or sends another MiB, is reset. Again: the same guarantee of the same end.
    @discardableResult
    @inlinable @inline(__always)
    public func close(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        Guarantee(startClosing().core.traced(root: "close", Guarantee<Void>.self, file, line))
    }

    @usableFromInline
    func startClosing() -> Guarantee<Void> {
        if phase == .closed { return .value }
        if let closing { return Guarantee(closing) }
        let core = Core(root: Void.self)
        closing = core
        phase = .flushing
        idleTimer?.cancel()
        cancelRead()
        if failure != nil {
            release()
        } else if outgoing == nil {
            linger()
        } else {
            updateInterest()
        }
        if phase != .closed { armClosingTimer() }
        return Guarantee(core)
    }

    /// Drops everything and resets: the peer's reads fail with `ECONNRESET`. Waiting operations fail with `ECANCELED`.
    public func abort() {
        guard phase != .closed else { return }
        socket.setResetOnClose()
        let error = SystemError(.send, ECANCELED, detail: "the connection was aborted")
        failure = error
        failWrites()
        release()
    }

    private func linger() {
        phase = .lingering
        endWriteSide()
        if hasEnded { release() } else { discardInput() }
    }

    /// Reads to nobody; ends the connection when the peer has ended.
    private func discardInput() {
        let buffer = loop.scratch
        let count = loop.kernel.receive(socket.fd, buffer.baseAddress!, buffer.count)
        if count == -Int(EAGAIN) { return updateInterest() }
        discarded += max(count, 0)
        if count <= 0 { return release() }
        if discarded > Self.closingAppetite { return abort() }
        updateInterest()
    }

    private func armClosingTimer() {
        let before = (queuedBytes, discarded)
        // Unowned: the timer is cancelled when the descriptor is closed, and until then the poller holds us.
        closingTimer = loop.schedule(after: Self.closingPatience) { [unowned self] in
            if before != (queuedBytes, discarded) { armClosingTimer() } else { abort() }
        }
    }

    private func cancelRead() {
        if pendingRead != nil { failRead(SystemError(.receive, ECANCELED, detail: "the connection was closed")) }
    }

    /// Closes the descriptor. The number is never touched again: by then it may be another's.
    private func release() {
        // An inline handler of what failed or was cancelled just before may have closed it meanwhile.
        guard phase != .closed else { return }
        phase = .closed
        interest = []
        closingTimer?.cancel()
        idleTimer?.cancel()
        cancelRead()
        loop.forget(socket.fd)
        loop.kernel.close(socket.fd)
        if let closing {
            self.closing = nil
            closing.fulfill(())
        }
    }

    // MARK: Idling

    /// Fails the connection, with `ETIMEDOUT`, when it has neither received nor sent a byte for this long; `nil`, which is
    /// the default, and anything that is not above zero mean never. A waiting read and waiting writes fail then, later ones too.
    ///
    /// Activity costs one store. The timer looks at it when it fires and goes on for the rest, so that it is moved once
    /// a period and not once a message.
    public var idleTimeout: Duration? {
        didSet {
            idleTimer?.cancel()
            idleTimer = nil
            guard phase == .open, let idleTimeout, idleTimeout > .zero else { return }
            lastActivity = loop.now
            armIdleTimer()
        }
    }

    private func armIdleTimer() {
        guard let idleTimeout else { return }
        idleCheck = nil
        idleTimer = loop.schedule(at: lastActivity.advanced(by: idleTimeout)) { [weak self] in self?.idleTimerFired() }
    }

    private func idleTimerFired() {
        guard phase == .open, failure == nil, let idleTimeout else { return }
        guard lastActivity.advanced(by: idleTimeout) <= loop.now else { return armIdleTimer() }
        // Timers come before events: after a stall of the loop, or of the machine, what has arrived in time may still
        // wait in the kernel. One turn for it, and only then is silence silence.
        guard idleCheck == bytesReceived + bytesSent else {
            idleCheck = bytesReceived + bytesSent
            idleTimer = loop.schedule(after: .zero) { [weak self] in self?.idleTimerFired() }
            return
        }
        let error = SystemError(.receive, ETIMEDOUT, detail: "idle for \(idleTimeout)")
        failure = error
        hasEnded = true
        failRead(error)
        failWrites()
        updateInterest()
    }
}

extension Connection: CustomStringConvertible {
    /// `Connection(127.0.0.1:54321)`, with the peer's address.
    public var description: String { "Connection(\(peerAddress?.description ?? "gone"))" }
}

extension Connection: ReadinessHandler {
    package func loopIsEnding() {
        guard phase != .closed else { return }
        failure = SystemError(.send, ECANCELED, detail: "the loop has ended")
        failWrites()
        release()
    }

    package func descriptorIsReady(_ ready: Interest) {
        interest.subtract(ready)
        // Each step may end the connection.
        if ready.contains(.writing) { flush() }
        if ready.contains(.reading) {
            if phase == .lingering { discardInput() } else { readNow() }
        }
        updateInterest()
    }

    private func updateInterest() {
        var wanted: Interest = []
        if pendingRead != nil || phase == .lingering { wanted.insert(.reading) }
        if outgoing != nil { wanted.insert(.writing) }
        guard wanted != interest, phase != .closed else { return }
        interest = wanted
        do throws(SystemError) {
            try loop.setInterest(wanted, of: socket.fd, handler: self)
        } catch {
            // The kernel has no room for the registration: nothing would ever be reported.
            interest = []
            hasEnded = true
            failRead(error)
            fail(error)
        }
    }
}

extension Guarantee<ReadOutcome> {
    fileprivate static func failed(_ code: CInt, _ detail: String) -> Self {
        .value(.failed(SystemError(.receive, code, detail: detail)))
    }
}
