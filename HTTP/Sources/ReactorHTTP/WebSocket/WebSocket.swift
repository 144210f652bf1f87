import Promises

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
    private var hasSentClose = false
    private var hasEnded = false

    init(_ connection: Connection, limit: Int, subprotocol: String?) {
        self.connection = connection
        self.subprotocol = subprotocol
        decoder = WebSocketDecoder(limit: limit)
    }

    // MARK: Receiving

    /// The next message; `nil` when the client has closed. Pings are answered meanwhile.
    ///
    /// Rejected with `WebSocketError` for what breaks the protocol, after which the client gets the code of the error; with 1006
    /// if the connection ends without a close; and with the `SystemError` of the connection.
    public func receive() -> Promise<Message?> {
        if hasEnded { return .value(nil) }
        return connection.readFrame(decoder).recover { error -> Promise<WebSocketEvent?> in
            self.hasEnded = true
            if case StreamError.endedEarly = error { throw WebSocketError(1006, "the connection has ended") }
            guard let error = error as? WebSocketError else { throw error }
            return self.sendClose(error.code).then { Promise<WebSocketEvent?>(error: error) }
        }.then { event -> Promise<Message?> in
            switch event {
            case .message(let message): return .value(message)
            case .ping(let payload): return self.write(0x8A, payload).then { self.receive() }
            case .pong: return self.receive()
            case .close(let code):
                self.hasEnded = true
                return self.sendClose(code).map { nil }
            case nil:
                self.hasEnded = true
                throw WebSocketError(1006, "the connection has ended")
            }
        }
    }

    /// Calls `body` with each message until the client closes, the next one when the promise of the call before is fulfilled.
    /// - Parameter body: called with each message.
    /// - Returns: a promise that is rejected as `receive`, or with the error of `body`.
    public func forEach(_ body: @escaping (Message) throws -> Promise<Void>) -> Promise<Void> {
        // A loop, written as recursion: it runs in constant memory.
        receive().then { message -> Promise<Void> in
            guard let message else { return .value }
            return try body(message).then { self.forEach(body) }
        }
    }

    // MARK: Sending

    /// Sends a message, in one frame.
    /// - Returns: a promise that is fulfilled when the kernel has taken it. Rejected as `Connection.write`, and with
    ///   `WebSocketError` after `close`.
    @discardableResult
    public func send(_ message: Message) -> Promise<Void> {
        if hasSentClose { return Promise(error: WebSocketError(1000, "the socket is closed")) }
        switch message {
        case .text(let text): return write(0x81, Array(text.utf8))
        case .bytes(let bytes): return write(0x82, bytes)
        }
    }

    /// Sends a text; see the form with a message.
    @discardableResult
    public func send(_ text: String) -> Promise<Void> { send(.text(text)) }

    /// Asks the client for a sign of life, which counts as received.
    @discardableResult
    public func ping() -> Promise<Void> { hasSentClose ? .value : write(0x89, []) }

    /// Closes the socket: sends the code, and waits up to five seconds for the client's. What it sends meanwhile is dropped.
    /// - Parameter code: 1000 for an end in order; RFC 6455, section 7.4, has the others.
    @discardableResult
    public func close(code: UInt16 = 1000) -> Promise<Void> {
        sendClose(code).then { [self] in hasEnded ? .value : forEach { _ in .value }.timeout(.seconds(5)) }
            .recover(policy: .allErrors) { _ in .value }
    }

    private func sendClose(_ code: UInt16?) -> Promise<Void> {
        if hasSentClose { return .value }
        hasSentClose = true
        return write(0x88, code.map { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] } ?? [])
    }

    private func write(_ first: UInt8, _ payload: [UInt8]) -> Promise<Void> {
        connection.write { output in
            output.append(first)
            switch payload.count {
            case 0..<126: output.append(UInt8(payload.count))
            case 126..<65_536:
                output.append(UInt8(126))
                output.append(UInt16(payload.count))
            default:
                output.append(UInt8(127))
                output.append(UInt64(payload.count))
            }
            output.append(payload)
        }
    }
}
