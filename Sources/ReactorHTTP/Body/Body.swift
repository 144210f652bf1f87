import Promises
import Reactor
import ReactorIO

/// The body of a request or response, read on demand. An unread body slows the peer down.
///
/// ```swift
/// request.body.text().map { Response("you said \($0)") }
/// ```
///
/// One read at a time. A body can be read once, in parts or whole.
public final class Body {
    /// The declared length in bytes; `nil` if it is chunked or ends with the connection.
    public var length: Int? { decoder.length }

    /// The maximum length in bytes. Reads of a longer body are rejected with `HTTPError`: 413, in the client 502.
    /// Initially the server's or client's limit. The client's applies only to `bytes` and `text`: reading in parts has
    /// no limit unless the program sets this one.
    public var limit: Int {
        get { min(decoder.limit, wholeLimit) }
        // Capped so that sums do not overflow.
        set { (decoder.limit, wholeLimit) = (min(max(newValue, 0), .max / 64), .max) }
    }

    /// The limit of `bytes` and `text` when other reads have none.
    private var wholeLimit = Int.max

    /// A chunked body's trailer fields, once it has been read.
    public var trailers: Headers { decoder.trailers }

    /// True once the whole body has been read.
    public var isComplete: Bool { decoder.isComplete }

    var isReadable: Bool { connection != nil && decoder.excess == nil }

    private(set) var hasFailed = false
    private(set) var hasBegun = false
    /// Asks the peer for the body before the first read.
    var beforeFirstRead: ((Connection) -> Promise<Void>)?

    /// A second read is refused.
    private var reading: Promise<[UInt8]?>?
    var isReading: Bool { reading?.isPending == true }

    /// A response's address. Here, because a `Fetched` is copied.
    var place: WebAddress?

    // `@exclusivity(unchecked)`: one thread, and a decoder makes no calls that could call back.
    @exclusivity(unchecked) var decoder: BodyDecoder
    /// Counts the bytes gathered by `bytes`.
    private var kept: KeptBytes?
    /// `nil` once nothing more can be read: all was read (`isComplete`), a read failed (`hasFailed`), or the response
    /// was sent and `end` called. Always `nil` for a body without a client.
    private var connection: Connection?
    /// The source of a body without a client.
    private var content: Content?
    /// Called once: with `nil` when the body is complete, or with an error if it never will be. Returns the read's
    /// error.
    private var onEnd: (((any Error)?) -> (any Error)?)?

    /// - Parameters:
    ///   - connection: `nil` for an ended message.
    ///   - isOfResponse: true on the client's side.
    init(
        _ framing: Framing, of connection: Connection?, limit: Int, maxHead: Int, isOfResponse: Bool = false,
        onEnd: (((any Error)?) -> (any Error)?)? = nil
    ) {
        decoder = BodyDecoder(framing, maxHead: maxHead, isOfResponse: isOfResponse)
        (self.connection, self.onEnd) = (connection, onEnd)
        self.limit = isOfResponse ? .max : limit
        if isOfResponse { wholeLimit = limit }
        if decoder.isComplete { finish(nil) }
    }

    /// A body without a client.
    convenience init(of content: Content, limit: Int) {
        let framing: Framing = content.length.map { $0 == 0 ? .none : .length($0) } ?? .untilEnd
        self.init(framing, of: nil, limit: limit, maxHead: 0)
        self.content = content
    }

    deinit { if !decoder.isComplete { finish(BodyError.unread) } }

    func end() {
        if connection == nil { return }
        (connection, beforeFirstRead) = (nil, nil)
    }

    @discardableResult
    private func finish(_ error: (any Error)?) -> (any Error)? {
        end()
        guard let onEnd else { return error }
        self.onEnd = nil
        return onEnd(error)
    }

    /// The next part, as large as it arrived and never empty; `nil` at the end.
    ///
    /// Rejected with
    /// - `HTTPError` if the body is longer than `limit` or invalid;
    /// - `StreamError.timedOut` at a time limit of the server, `FetchError.timedOut` at one of the client;
    /// - `BodyError.endedEarly` if the peer ends first;
    /// - `BodyError.unreadable` once the request's response has been sent;
    /// - the connection's `SystemError`.
    ///
    /// After an error the message's connection ends.
    public func read() -> Promise<[UInt8]?> {
        if let left = takeLeft() { return accept(left) }
        return next()
    }

    /// The bytes that arrived for a cancelled read.
    private func takeLeft() -> [UInt8]? {
        if isReading || reading == nil { return nil }
        var left = decoder.whole ?? []
        if case .success(let part?)? = reading?.result { left += part }
        reading = nil
        dropWhole()
        return left.isEmpty ? nil : left
    }

    private func next() -> Promise<[UInt8]?> {
        if decoder.isComplete {
            finish(nil)
            return .value(nil)
        }
        guard let connection else {
            guard let content = content.take() else { return Promise(error: BodyError.unreadable) }
            return content.bytes().then { try self.acceptAll($0) }
        }
        // Before `100 Continue`, and without waiting for the first byte.
        if let error = decoder.excess { return Promise(error: fail(error)) }
        hasBegun = true
        if let beforeFirstRead {
            self.beforeFirstRead = nil
            return beforeFirstRead(connection).then { self.next() }
        }
        let part = connection.readFrame(BodyReader(body: self))
        // Refused, because another read waits.
        if isReading { return part }
        // The body usually arrives with the head.
        switch part.result {
        case .success(let bytes): return accept(bytes, by: part)
        case .failure(let error): return Promise(error: fail(error))
        case nil:
            reading = part
            return part.recover(policy: .allErrors) { error in
                // A cancelled read leaves its bytes to the next.
                throw error as? PromiseError == .cancelled ? error : self.fail(error)
            }.then { self.accept($0) }
        }
    }

    /// Takes the rest of a body with a length, if all of it has arrived: a small body usually has, with the head. That
    /// needs no promise and no copy.
    @usableFromInline
    func takeArrivedRest() -> [UInt8]? {
        guard reading == nil, beforeFirstRead == nil, decoder.excess == nil, let connection,
            let rest = decoder.takeRest(from: connection)
        else { return nil }
        hasBegun = true
        finish(nil)
        return rest
    }

    private func acceptAll(_ bytes: [UInt8]) throws -> Promise<[UInt8]?> {
        do { _ = try decoder.decode(bytes.span.bytes) } catch { throw fail(error) }
        decoder.connectionDidEnd()
        return accept(bytes)
    }

    /// Ends reading after an error, since the decoder may have consumed bytes.
    private func fail(_ error: any Error) -> any Error {
        reading = nil
        hasFailed = true
        let error: any Error = if case StreamError.endedEarly = error { BodyError.endedEarly } else { error }
        return finish(error) ?? error
    }

    /// - Parameter read: the part's promise, if any.
    private func accept(_ part: [UInt8]?, by read: Promise<[UInt8]?>? = nil) -> Promise<[UInt8]?> {
        reading = nil
        do { try acceptOfWhole() } catch { return Promise(error: error) }
        if part == nil { decoder.connectionDidEnd() }
        if decoder.isComplete { finish(nil) }
        guard let part else { return decoder.isComplete ? .value(nil) : Promise(error: fail(BodyError.endedEarly)) }
        // The read brought only chunk framing, or bytes that `bytes` gathers.
        return part.isEmpty ? next() : read ?? .value(part)
    }

    /// The whole body in one array. Its bytes count towards the `memoryLimit` of the listener or pool until the last
    /// one has arrived.
    /// - Returns: a promise that is rejected as `read`.
    public func bytes() -> Promise<[UInt8]> {
        if !isReading {
            if decoder.lacks(moreThan: wholeLimit) { return Promise(error: failWhole()) }
            if let rest = takeArrivedRest() { return .value(rest) }
            decoder.whole = takeLeft() ?? []
        }
        return next().map { _ in
            // The program owns the bytes now.
            defer { self.dropWhole() }
            return self.decoder.whole ?? []
        }
    }

    func dropWhole() { (decoder.whole, kept) = (nil, nil) }

    private func acceptOfWhole() throws {
        guard let whole = decoder.whole else { return }
        if whole.count > wholeLimit { throw failWhole() }
        if isComplete { return }
        if kept == nil { kept = connection.flatMap { KeptBytes(0, of: $0) } }
        kept?.count = whole.usedMemory
    }

    /// The client's error for a body longer than `wholeLimit`.
    private func failWhole() -> any Error {
        fail(HTTPError.unusable("a body of more than \(wholeLimit) bytes: read it in parts, or set its limit"))
    }

    /// The whole body as text. Invalid UTF-8 is replaced.
    /// - Returns: a promise that is rejected as `read`.
    public func text() -> Promise<String> { bytes().map { String(decoding: $0, as: UTF8.self) } }

    /// Calls `body` with each part, once the promise for the previous one is fulfilled.
    /// - Returns: a promise that is fulfilled at the end, and rejected as `read` or with the error of `body`.
    @inlinable
    public func forEach<Next: Thenable<Void>>(_ body: @escaping ([UInt8]) throws -> Next) -> Promise<Void> {
        if let rest = takeArrivedRest() { return firstly { try body(rest).asPromise() } }
        // A loop written as recursion, in constant memory.
        return read().then { part -> Promise<Void> in
            guard let part else { return .value }
            return try body(part).asPromise().then { self.forEach(body) }
        }
    }

    /// Calls `body` with each part without waiting in between; see the form with promises.
    public func forEach(_ body: @escaping ([UInt8]) throws -> Void) -> Promise<Void> {
        forEach { part -> Promise<Void> in
            try body(part)
            return .value
        }
    }

    func discard() -> Promise<Void> { isComplete ? .value : forEach { _ in } }
}

/// The reason that a body cannot be read.
public enum BodyError: Error, Hashable, Sendable {
    /// The peer ended the connection inside the body.
    case endedEarly
    /// The request's response was sent, or the body discarded.
    case unreadable
    /// The body was released unread.
    case unread
}
