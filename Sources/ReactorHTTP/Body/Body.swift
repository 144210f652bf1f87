import Promises
import Reactor
import ReactorIO

/// The body of a request or response, read on demand. An unread body slows the peer down.
///
/// ```swift
/// request.body.text().map { Response("you said \($0)") }
/// ```
///
/// Allows one read at a time, and can be read once, in parts or whole.
public final class Body {
    /// The declared length in bytes; `nil` for a body that is chunked or ends with the connection.
    public var length: Int? { decoder.length }

    /// The maximum length in bytes. Reads of a longer body are rejected with `HTTPError`: 413 in a server, 502 in a
    /// client. The default is the server's or client's limit. A client's applies only to `bytes` and `text`; reads in
    /// parts have no limit until the program sets this property.
    public var limit: Int {
        get { min(decoder.limit, wholeLimit) }
        // Capped so that sums do not overflow.
        set { (decoder.limit, wholeLimit) = (min(max(newValue, 0), .max / 64), .max) }
    }

    /// The limit that applies only to `bytes` and `text`.
    private var wholeLimit = Int.max

    /// A chunked body's trailer fields, complete once the body has been read.
    public var trailers: Headers { decoder.trailers }

    /// True once the whole body has been read.
    public var isComplete: Bool { decoder.isComplete }

    var isReadable: Bool { connection != nil && decoder.excess == nil }

    private(set) var hasFailed = false
    private(set) var hasBegun = false
    /// Asks the peer for the body before the first read.
    var beforeFirstRead: ((Connection) -> Promise<Void>)?

    /// The waiting read, or a cancelled one whose bytes are still to be delivered.
    private var reading: Promise<[UInt8]?>?
    var isReading: Bool { reading?.isPending == true }

    /// The response's address, kept here because `Fetched` is copied.
    var place: WebAddress?

    // `@exclusivity(unchecked)`: used on one thread, and a decoder never calls back.
    @exclusivity(unchecked) var decoder: BodyDecoder
    /// The count of the bytes that `bytes` gathers.
    private var kept: KeptBytes?
    /// `nil` once nothing more can be read: the body is complete, a read failed, or `end` was called after the
    /// response. Always `nil` for a body without a client.
    private var connection: Connection?
    /// The source of a body without a client.
    private var content: Content?
    /// Called once: with `nil` when the body is complete, or with the error that prevents it. Returns the error for the
    /// read.
    private var onEnd: (((any Error)?) -> (any Error)?)?

    /// - Parameters:
    ///   - connection: `nil` if the message has ended.
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

    /// Reads the bytes that have arrived, at least one; `nil` at the body's end.
    ///
    /// Rejected with
    /// - `HTTPError` if the body is longer than `limit` or invalid;
    /// - `StreamError.timedOut` at a server's time limit, `FetchError.timedOut` at a client's;
    /// - `BodyError.endedEarly` if the peer ends first;
    /// - `BodyError.unreadable` once the request's response has been sent;
    /// - the connection's `SystemError`.
    ///
    /// An error also ends the connection.
    public func read() -> Promise<[UInt8]?> {
        if let left = takeLeft() { return accept(left) }
        return next()
    }

    /// Takes the bytes that arrived for a cancelled read.
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
        // Fails before asking for `100 Continue` and without waiting for the first byte.
        if let error = decoder.excess { return Promise(error: fail(error)) }
        hasBegun = true
        if let beforeFirstRead {
            self.beforeFirstRead = nil
            return beforeFirstRead(connection).then { self.next() }
        }
        let part = connection.readFrame(BodyReader(body: self))
        // `readFrame` refused this read, because another one waits.
        if isReading { return part }
        switch part.result {
        case .success(let bytes): return accept(bytes, by: part)
        case .failure(let error): return Promise(error: fail(error))
        case nil:
            reading = part
            return part.recover(policy: .allErrors) { error in
                // A cancelled read leaves its bytes to the next read.
                throw error as? PromiseError == .cancelled ? error : self.fail(error)
            }.then { self.accept($0) }
        }
    }

    /// Takes the rest of a body with a length if all of it has arrived, as a small body usually has with the head. This
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

    /// - Parameter read: the promise that delivered the part, if any.
    private func accept(_ part: [UInt8]?, by read: Promise<[UInt8]?>? = nil) -> Promise<[UInt8]?> {
        reading = nil
        do { try acceptOfWhole() } catch { return Promise(error: error) }
        if part == nil { decoder.connectionDidEnd() }
        if decoder.isComplete { finish(nil) }
        guard let part else { return decoder.isComplete ? .value(nil) : Promise(error: fail(BodyError.endedEarly)) }
        // An empty part was only chunk framing, or bytes that `bytes` gathers.
        return part.isEmpty ? next() : read ?? .value(part)
    }

    /// Reads the whole body into one array. The bytes count towards the `memoryLimit` of the listener or pool until all
    /// have arrived.
    /// - Returns: a promise with the same errors as `read`.
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

    /// Fails the read, because a client's body is longer than `wholeLimit`.
    private func failWhole() -> any Error {
        fail(HTTPError.unusable("a body of more than \(wholeLimit) bytes: read it in parts, or set its limit"))
    }

    /// Reads the whole body as text, replacing invalid UTF-8.
    /// - Returns: a promise with the same errors as `read`.
    public func text() -> Promise<String> { bytes().map { String(decoding: $0, as: UTF8.self) } }

    /// Calls `body` with each part, once the promise for the previous one is fulfilled.
    /// - Returns: a promise that is fulfilled at the body's end, or rejected with an error from `read` or `body`.
    @inlinable
    public func forEach<Next: Thenable<Void>>(_ body: @escaping ([UInt8]) throws -> Next) -> Promise<Void> {
        if let rest = takeArrivedRest() { return firstly { try body(rest).asPromise() } }
        // This recursion runs as a loop, in constant memory.
        return read().then { part -> Promise<Void> in
            guard let part else { return .value }
            return try body(part).asPromise().then { self.forEach(body) }
        }
    }

    /// Calls `body` with each part without waiting in between; see the overload with promises.
    public func forEach(_ body: @escaping ([UInt8]) throws -> Void) -> Promise<Void> {
        forEach { part -> Promise<Void> in
            try body(part)
            return .value
        }
    }

    func discard() -> Promise<Void> { isComplete ? .value : forEach { _ in } }
}

/// The reason why a body cannot be read.
public enum BodyError: Error, Hashable, Sendable {
    /// The peer ended the connection inside the body.
    case endedEarly
    /// The request's response was sent, or the body was discarded.
    case unreadable
    /// The body was released unread.
    case unread
}
