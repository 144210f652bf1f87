import Glibc
import Promises
import Reactor

/// A WebSocket with a client: RFC 6455. See `Response.webSocket`.
///
/// It belongs to the loop of its connection. One `receive` at a time; sending is independent of it.
public final class WebSocket {
    /// A message.
    public enum Message: Hashable, Sendable {
        case text(String)
        case bytes([UInt8])
    }

    /// The subprotocol that was agreed on.
    public let subprotocol: String?
    private let connection: Connection
    private let decoder: WebSocketDecoder
    private let idle: Duration?
    /// Whether the client has been asked for a sign of life since its last frame.
    private var isAsked = false
    private var hasSentClose = false
    /// The client has closed, or nothing more can come from it.
    private var hasEnded = false
    /// The client does not read.
    private var hasGivenUp = false
    /// A loop over frames that is under way.
    private var reading: Promise<Void>?
    /// The promise of the body of `forEach` is pending.
    private var isInBody = false
    /// Checks whether the client takes what waits for it.
    private var slowReader: Guarantee<Void>?
    /// The promise of the first `close`.
    private var closing: Promise<Void>?

    init(_ connection: Connection, limit: Int, idle: Duration?, subprotocol: String?) {
        self.connection = connection
        self.idle = idle
        // Not `idleTimeout`, which would cost time per message. A frame that keeps arriving is not late.
        connection.frameTimeouts = FrameTimeouts(idle: idle, frame: idle, minimumRate: 1000)
        self.subprotocol = subprotocol
        decoder = WebSocketDecoder(limit: limit)
    }

    // MARK: Receiving

    /// The next message; `nil` when the client or this side has closed, or the listener is drained. Pings are answered meanwhile.
    ///
    /// Rejected with `WebSocketError` for what breaks the protocol, after which the client gets the code of the error; with 1006
    /// if the connection ends without a close, or the client is silent for too long or does not read; and with the
    /// `SystemError` of the connection.
    public func receive() -> Promise<Message?> {
        var received: Message?
        return forEachMessage { message in
            received = message
            throw StopReading()
        }.map { received }
    }

    /// Calls `body` with each message until the client or this side closes, or the listener is drained; the next one when the
    /// promise of the call before is fulfilled.
    /// - Parameter body: called with each message. `StopReading` ends the loop.
    /// - Returns: a promise that is rejected as `receive`, or with the error of `body`.
    @inlinable
    public func forEach<Next: Thenable<Void>>(_ body: @escaping (Message) throws -> Next) -> Promise<Void> {
        forEachMessage { try body($0).asPromise() }
    }

    /// Calls `body` with each message, without waiting between the calls; see the form with promises.
    public func forEach(_ body: @escaping (Message) throws -> Void) -> Promise<Void> {
        forEachMessage { message in
            try body(message)
            return .value
        }
    }

    @usableFromInline
    func forEachMessage(_ body: @escaping (Message) throws -> Promise<Void>) -> Promise<Void> {
        if hasEnded || hasSentClose { return .value }
        /// That of `body`.
        var failure: (any Error)?
        return readFrames { [self] event in
            isAsked = false
            guard case .message(let message) = event, !hasSentClose else { return answer(event) }
            isInBody = true
            let answer = firstly { try body(message) }
            if !answer.isPending {
                isInBody = false
                failure = answer.error
                return answer
            }
            return answer.tapError { failure = $0 }.ensure { [self] in isInBody = false }.done { [self] in
                // A `close` has read the client's.
                if hasEnded { throw StopReading() }
            }
        }.recover(policy: .allErrors) { [self] error -> Promise<Void> in
            if failure != nil { throw error }
            if hasGivenUp { return try readingDidFail(error) }
            if case StreamError.timedOut(got: 0) = error, !isAsked {
                isAsked = true
                return ping().then { [self] in forEachMessage(body) }
            }
            return try readingDidFail(error)
        }.then { [self] in failure is StopReading ? .value : try readingDidEnd() }
    }

    private func readFrames(_ body: @escaping (WebSocketEvent) throws -> Promise<Void>) -> Promise<Void> {
        let frames = connection.forEachFrame(decoder, body)
        // A second one at a time is refused.
        if reading == nil { reading = frames.ensure { [self] in reading = nil } }
        return reading ?? frames
    }

    /// Answers what is no message for the program.
    private func answer(_ event: WebSocketEvent) -> Promise<Void> {
        switch event {
        // Nothing follows a close frame.
        case .ping(let payload) where !hasSentClose: return write(0x8A, payload)
        case .message, .ping, .signOfLife: return .value
        case .close(let code):
            hasEnded = true
            return sendClose(code).recover { _ in .value }.then { () -> Promise<Void> in throw StopReading() }
        }
    }

    private func readingDidFail(_ error: any Error) throws -> Promise<Void> {
        hasEnded = true
        if hasGivenUp { throw WebSocketError(1006, "the client does not read") }
        if let failure = decoder.failure { return sendClose(failure.code).then { Promise(error: failure) } }
        // After a close, any end is one.
        if hasSentClose { return .value }
        switch error {
        case StreamError.endedEarly: throw WebSocketError(1006, "the connection has ended")
        case StreamError.timedOut: throw WebSocketError(1006, "the client has been silent for too long")
        default: throw error
        }
    }

    /// Whether `error` is none of the program.
    func clientHasCaused(_ error: any Error) -> Bool {
        error is WebSocketError || hasGivenUp && error is SystemError || connection.hasEnded(with: error)
    }

    /// The client has closed, a drain has ended the reading, or the connection has ended.
    private func readingDidEnd() throws -> Promise<Void> {
        if hasEnded || hasSentClose { return .value }
        if connection.isDraining { return sendClose(1001) }
        return try readingDidFail(StreamError.endedEarly(expected: .frame, got: 0))
    }

    // MARK: Sending

    /// Sends a message, in one frame.
    ///
    /// A client for which messages of `connection.writeQueueLimit` (4 MiB) wait is given up: those that follow a lost one would
    /// make no sense.
    /// - Returns: a promise that is fulfilled when the kernel has taken it. Rejected as `Connection.write`, and with
    ///   `WebSocketError` after `close`. It may be ignored: that the client has gone is told by what receives.
    @discardableResult
    public func send(_ message: Message) -> Promise<Void> {
        if hasSentClose { return Promise(error: WebSocketError(1000, "the socket is closed")).mayBeIgnored }
        switch message {
        case .text(let text): return write(0x81, count: text.utf8.count) { $0.append(text) }
        case .bytes(let bytes): return write(0x82, bytes)
        }
    }

    /// Sends a text; see the form with a message.
    @discardableResult
    public func send(_ text: String) -> Promise<Void> { send(.text(text)) }

    /// Asks the client for a sign of life, which counts as received.
    @discardableResult
    public func ping() -> Promise<Void> { hasSentClose ? .value : write(0x89, []) }

    /// Closes the socket: sends the code, and waits up to five seconds for the client's. Messages that arrive meanwhile are
    /// dropped, and a `receive` or `forEach` that waits ends as if the client had closed.
    /// - Parameter code: 1000 for an end in order; RFC 6455, section 7.4, has the others. One that no side may send becomes 1000.
    @discardableResult
    public func close(code: UInt16 = 1000) -> Promise<Void> {
        if let closing { return closing }
        let sent = sendClose(isCloseCode(code) ? code : 1000)
        let closed = sent.then { [self] in clientDidClose() }.timeout(.seconds(5))
            .recover(policy: .allErrors) { [self] _ in
                hasEnded = true
                // Ends a read that waits.
                connection.close()
                return .value
            }
        closing = connection.deferDrain(until: closed)
        return closed
    }

    /// Fulfilled when the client has closed.
    private func clientDidClose() -> Promise<Void> {
        if hasEnded { return .value }
        // The loop reads on when its body has ended, which may wait for this.
        if isInBody { return readClose().recover { _ in .value }.done { [self] in hasEnded = true } }
        if let reading { return reading.recover { _ in .value }.then { [self] in clientDidClose() } }
        return readFrames { [self] event in answer(event) }.recover { _ in .value }.done { [self] in hasEnded = true }
    }

    /// Reads up to the client's close frame, or to the end.
    private func readClose() -> Promise<Void> {
        connection.readFrame(decoder).then { [self] event -> Promise<Void> in
            guard let event else { return .value }
            return answer(event).then { [self] in readClose() }
        }
    }

    private func sendClose(_ code: UInt16?) -> Promise<Void> {
        if hasSentClose { return .value }
        hasSentClose = true
        return write(0x88, code.map { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] } ?? [])
    }

    private func write(_ first: UInt8, _ payload: [UInt8]) -> Promise<Void> {
        write(first, count: payload.count) { $0.append(payload) }
    }

    private func write(_ first: UInt8, count: Int, _ append: (inout ByteWriter) -> Void) -> Promise<Void> {
        let sent = connection.write { output in
            output.append(first)
            switch count {
            case 0..<126: output.append(UInt8(count))
            case 126..<65_536:
                output.append(UInt8(126))
                output.append(UInt16(count))
            default:
                output.append(UInt8(127))
                output.append(UInt64(count))
            }
            append(&output)
        }
        if sent.isFulfilled { return sent }
        if sent.isPending, let idle { watchReader(idle) }
        // Without the message, those that follow would make no sense.
        if case .failure(let error as SystemError)? = sent.result, error.code == ENOBUFS { giveUp() }
        return sent.mayBeIgnored
    }

    private func giveUp() {
        hasGivenUp = true
        connection.abort()
    }

    /// Gives up a client that takes nothing for `idle`, whatever it sends.
    /// - Parameter half: whether it has taken nothing for half of the time already. After a stall of the loop, it still has the other.
    private func watchReader(_ idle: Duration, half: Bool = false) {
        if slowReader != nil { return }
        let before = connection.bytesSent
        slowReader = after(idle / 2)
        slowReader?.done { [weak self] in
            guard let self else { return }
            slowReader = nil
            if connection.queuedBytes == 0 { return }
            if half, connection.bytesSent == before { return giveUp() }
            watchReader(idle, half: connection.bytesSent == before)
        }
    }
}
