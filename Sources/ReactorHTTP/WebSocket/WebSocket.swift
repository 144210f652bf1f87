import Promises
import Reactor
import ReactorIO
import ReactorLibc

/// A WebSocket: RFC 6455. For servers see `Response.webSocket`, for clients `connectWebSocket`.
///
/// Use it only on its connection's loop. Allows one `receive` at a time; sending is independent. Frames are read
/// continuously, so pings and the peer's close are answered even without a receiver. Messages are queued for `receive`;
/// reading stops when they reach the size limit of one message.
public final class WebSocket {
    /// A message.
    public enum Message: Hashable, Sendable {
        case text(String)
        case bytes([UInt8])
    }

    /// The negotiated subprotocol.
    public let subprotocol: String?
    /// The code (1005 if absent) and reason in the peer's close frame, which may answer this side's. `nil` until the
    /// frame arrives, perhaps before the last messages are received.
    public internal(set) var peerClose: WebSocketError?
    let connection: Connection
    let decoder: WebSocketDecoder
    private let idle: Duration?
    /// True on the client's side, which masks its frames and owns the connection.
    let isClient: Bool
    // `@exclusivity(unchecked)`: used on one thread, and no field changes during calls that could call back.
    @exclusivity(unchecked) private(set) var hasSentClose = false
    /// True when the peer was disconnected because the write queue was full.
    private(set) var hasGivenUp = false
    /// The first `close`'s promise.
    private var closing: Promise<Void>?
    /// Called when no more frames can arrive, for a waiting `close`.
    private var onEnd: (() -> Void)?

    // State of `WebSocket+Receiving.swift`:

    var isReading = false
    /// True when a ping was sent after the peer's last frame.
    @exclusivity(unchecked) var isAsked = false
    /// The pending `receive` or `forEach`.
    @exclusivity(unchecked) var receiver: Receiver?
    /// True while the receiver handles a message.
    @exclusivity(unchecked) var isInBody = false
    var receivers = 0
    /// The resolver for waiting until another message fits.
    var room: Resolver<Void>?
    /// The reason why no frame follows, until reported after the queued messages.
    var ending: Ending?
    /// True when the peer can send nothing more.
    var hasEnded = false
    /// The error for the next `receive`.
    var failure: (any Error)?

    init(_ connection: Connection, limit: Int, idle: Duration?, subprotocol: String?, isClient: Bool = false) {
        self.connection = connection
        self.idle = idle
        self.isClient = isClient
        // `idleTimeout` would cost time per message. A frame that is still arriving is not late.
        connection.frameTimeouts = FrameTimeouts(idle: idle, frame: idle, minimumRate: 1000)
        self.subprotocol = subprotocol
        decoder = WebSocketDecoder(limit: limit, expectsMasks: !isClient)
    }

    /// Calls `body`, reads while its promise is pending, and then closes.
    func converse(_ body: (WebSocket) throws -> Promise<Void>) -> Promise<Void> {
        let conversation = firstly { try body(self) }
        // A conversation that never receives cannot notice the end, so the frame loop cancels it. If the socket kept
        // the conversation, both would retain each other.
        startReading { conversation.cancel() }
        return conversation.then { [self] in close() }.recover(policy: .allErrors) { [self] error in
            let isOfProgram = !clientHasCaused(error)
            return close(code: 1011).then { isOfProgram ? Promise(error: error) : .value }
        }
    }

    /// True when a client, not the program, caused `error`.
    private func clientHasCaused(_ error: any Error) -> Bool {
        error is WebSocketError || hasGivenUp && error is SystemError || connection.hasEnded(with: error)
    }

    // MARK: Sending

    /// Sends a message in one frame.
    ///
    /// A peer with `connection.writeQueueLimit` (4 MiB) of queued messages is disconnected, since messages after a lost
    /// one would make no sense.
    /// - Returns: a promise that is fulfilled when the kernel has taken the message. Rejected with the same errors as
    ///   `Connection.write`, or `WebSocketError` after a close. The promise may be ignored, because receiving reports a
    ///   lost peer.
    @discardableResult
    public func send(_ message: Message) -> Promise<Void> {
        if hasSentClose { return Promise(error: WebSocketError(1000, "the socket is closed")).mayBeIgnored }
        switch message {
        case .text(let text) where !isClient: return write(0x81, count: text.utf8.count) { $0.append(text) }
        case .text(let text): return write(0x81, Array(text.utf8))
        case .bytes(let bytes): return write(0x82, bytes)
        }
    }

    /// Sends a text; see the overload for messages.
    @discardableResult
    public func send(_ text: String) -> Promise<Void> { send(.text(text)) }

    /// Sends a ping; the pong counts as received data.
    @discardableResult
    public func ping() -> Promise<Void> { hasSentClose ? .value : write(0x89, []) }

    func pong(_ payload: [UInt8]) -> Promise<Void> { write(0x8A, payload) }

    /// Closes the socket: sends the code, and waits up to five seconds for the peer's answer. Unreceived messages are
    /// dropped, and a pending `receive` or `forEach` ends as if the peer had closed.
    ///
    /// ```swift
    /// socket.close(code: 4001, reason: "token expired")
    /// ```
    /// - Parameters:
    ///   - code: 1000 for a normal closure, others in RFC 6455, section 7.4; 4000 to 4999 are the program's. A code
    ///     that may not be sent becomes 1000.
    ///   - reason: a text for the peer; at most 123 bytes are sent.
    /// - Returns: a promise that is fulfilled when the peer has answered, or is given up. Cancelling it, for instance
    ///   by a shorter time limit, stops nothing.
    @discardableResult
    public func close(code: UInt16 = 1000, reason: String = "") -> Promise<Void> {
        let closing = closing ?? beginClose(code, reason).mayBeIgnored
        self.closing = closing
        // Each caller gets a promise: cancelling one affects neither the others nor the close.
        return closing.map { $0 }
    }

    private func beginClose(_ code: UInt16, _ reason: String) -> Promise<Void> {
        let sent = sendClose(isCloseCode(code) ? code : 1000, reason)
        dropMessages()
        let closed = sent.then { [self] in clientDidClose() }.timeout(.seconds(5))
            .recover(policy: .allErrors) { [self] _ in
                hasEnded = true
                // Ends a pending read.
                connection.close()
                return .value
            }
        return connection.deferDrain(until: closed)
    }

    /// Returns a promise that is fulfilled when no more frames can arrive.
    private func clientDidClose() -> Promise<Void> {
        switch ending {
        // The end is known, but was not reported while a message was being handled.
        case .closed?, .failed?: didClose()
        // A drain has stopped reading.
        case .drained?, nil: if !isReading, !hasEnded { startReading() }
        }
        if hasEnded { return .value }
        let (promise, resolver) = Promise<Void>.pending()
        onEnd = { resolver.fulfill(()) }
        return promise
    }

    /// Ends the socket after this side's close, when no more frames can arrive.
    func didClose() {
        (hasEnded, ending) = (true, nil)
        if isClient { connection.close() }
        onEnd.take()?()
        if let receiver, !isInBody { finish(receiver, nil) }
    }

    /// - Parameter code: 1005 for a frame without a code.
    @discardableResult
    func sendClose(_ code: UInt16, _ reason: String = "") -> Promise<Void> {
        if hasSentClose { return .value }
        hasSentClose = true
        if code == 1005 { return write(0x88, []) }
        var payload = [UInt8(code >> 8), UInt8(truncatingIfNeeded: code)]
        // A control frame has at most 125 bytes, and the text must stay valid.
        for character in reason.unicodeScalars {
            let bytes = UTF8.encode(character)!
            if payload.count + bytes.count > 125 { break }
            payload += bytes
        }
        return write(0x88, payload)
    }

    private func write(_ first: UInt8, _ payload: [UInt8]) -> Promise<Void> {
        if isClient { return watched(connection.write(masked(first, payload))) }
        return write(first, count: payload.count) { $0.append(payload) }
    }

    /// Writes a server's frame, without a mask.
    private func write(_ first: UInt8, count: Int, _ append: (inout ByteWriter) -> Void) -> Promise<Void> {
        watched(
            connection.write { output in
                output.append(frame: first, count: count, isMasked: false)
                append(&output)
            })
    }

    /// Encodes a client's frame, so that even the payload's author cannot predict the bytes on the wire: RFC 6455,
    /// section 5.3.
    func masked(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        var random = LoopRandom(.ofCurrentThread)
        let mask = UInt32.random(in: 1...UInt32.max, using: &random)
        var payload = payload
        payload.mask(with: mask)
        var frame = ByteWriter(reserving: payload.count + 14)
        frame.append(frame: first, count: payload.count, isMasked: true)
        frame.append(mask, .littleEndian)
        frame.append(payload)
        return frame.bytes
    }

    private func watched(_ sent: Promise<Void>) -> Promise<Void> {
        if sent.isFulfilled { return sent }
        // Without this message, later ones would make no sense.
        if case .failure(let error as SystemError)? = sent.result, error.code == ENOBUFS { giveUp() }
        return connection.limit(sent, idle: idle).mayBeIgnored
    }

    /// Sends a frame without waiting.
    /// - Returns: false if the peer will not get it.
    func post(_ frame: [UInt8], _ overflow: WriteOverflow) -> Bool {
        if hasSentClose { return false }
        if connection.post(frame, overflow: .drop) {
            if connection.writeTimeout == nil { connection.writeTimeout = idle }
            return true
        }
        // If bytes are queued, the queue was full.
        if overflow == .abort, connection.queuedBytes > 0, !connection.isClosed { giveUp() }
        return false
    }

    private func giveUp() {
        hasGivenUp = true
        connection.abort()
    }
}
