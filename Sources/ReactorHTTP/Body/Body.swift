import Promises
import Reactor
import ReactorIO

/// The body of a request or of a response, read on demand: while nobody reads it, the peer is slowed down.
///
/// ```swift
/// request.body.text().map { Response("you said \($0)") }
/// ```
///
/// One read at a time. A body can be read once, in parts or as a whole.
public final class Body {
    /// The length in bytes, if the sender has declared it; `nil` for a chunked body, or one that ends with the
    /// connection.
    public var length: Int? { decoder.length }

    /// The maximum length in bytes; reads of a longer body are rejected with `HTTPError`: 413, and 502 in the client.
    /// Initially the limit of the server, or of the client; the client's applies only to `bytes` and `text`: a response
    /// that is read in parts has no limit unless the program sets this one.
    public var limit: Int {
        get { min(decoder.limit, wholeLimit) }
        // Capped so that sums with it do not overflow.
        set { (decoder.limit, wholeLimit) = (min(max(newValue, 0), .max / 64), .max) }
    }

    /// The limit of `bytes` and `text` when other reads have none.
    private var wholeLimit = Int.max

    /// The trailer fields of a chunked body, once it has been read.
    public var trailers: Headers { decoder.trailers }

    /// `true` once the whole body has been read.
    public var isComplete: Bool { decoder.isComplete }

    /// Whether the rest of the body can be read.
    var isReadable: Bool { connection != nil && decoder.excess == nil }

    /// Whether a read has failed.
    private(set) var hasFailed = false
    /// Whether a read has been made.
    private(set) var hasBegun = false
    /// Tells the peer to send the body, before the first read.
    var beforeFirstRead: ((Connection) -> Promise<Void>)?

    /// The pending read; a second one is refused meanwhile.
    private var reading: Promise<[UInt8]?>?
    /// Whether a read waits.
    var isReading: Bool { reading?.isPending == true }

    /// The address of a response: in this object, since a `Fetched` is copied.
    var place: WebAddress?

    // `@exclusivity(unchecked)`: one thread, and a decoder calls nothing that could call back.
    @exclusivity(unchecked) var decoder: BodyDecoder
    /// Counts the bytes that `bytes` gathers.
    private var kept: KeptBytes?
    /// `nil` once nothing more can be read: all has been, which is `isComplete`; a read has failed, which is `hasFailed`;
    /// or `end` was called, since the response has been sent. Always `nil` for a body that no client sends.
    private var connection: Connection?
    /// The source of a body that no client sends.
    private var content: Content?
    /// Called once: with `nil` when the body is complete, or with an error if it never will be. Returns the error of
    /// the read.
    private var onEnd: (((any Error)?) -> (any Error)?)?

    /// - Parameters:
    ///   - connection: `nil` for a message that has ended.
    ///   - isOfResponse: whether this is the client's side.
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

    /// A body that no client sends.
    convenience init(of content: Content, limit: Int) {
        let framing: Framing = content.length.map { $0 == 0 ? .none : .length($0) } ?? .untilEnd
        self.init(framing, of: nil, limit: limit, maxHead: 0)
        self.content = content
    }

    deinit { if !decoder.isComplete { finish(BodyError.unread) } }

    /// Refuses further reads.
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

    /// The next part, in the size in which it arrived; never empty. `nil` at the end.
    ///
    /// Rejected with
    /// - `HTTPError` if the body is longer than `limit`, or not valid;
    /// - `StreamError.timedOut` at a time limit of the server, and `FetchError.timedOut` at one of the client;
    /// - `BodyError.endedEarly` if the peer ends before;
    /// - `BodyError.unreadable` once the response to the request has been sent;
    /// - the `SystemError` of the connection.
    ///
    /// After an error the message cannot be continued: its connection ends.
    public func read() -> Promise<[UInt8]?> {
        if let left = takeLeft() { return accept(left) }
        return next()
    }

    /// The bytes that have arrived for a read that was cancelled.
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
        // Before the client is told to continue, and without waiting for the first byte.
        if let error = decoder.excess { return Promise(error: fail(error)) }
        hasBegun = true
        if let beforeFirstRead {
            self.beforeFirstRead = nil
            return beforeFirstRead(connection).then { self.next() }
        }
        let part = connection.readFrame(BodyReader(body: self))
        // Refused, since another read waits, which goes on.
        if isReading { return part }
        // The body has usually arrived with the head.
        switch part.result {
        case .success(let bytes): return accept(bytes, by: part)
        case .failure(let error): return Promise(error: fail(error))
        case nil:
            reading = part
            return part.recover(policy: .allErrors) { error in
                // A cancelled read leaves the bytes to the next one.
                throw error as? PromiseError == .cancelled ? error : self.fail(error)
            }.then { self.accept($0) }
        }
    }

    private func acceptAll(_ bytes: [UInt8]) throws -> Promise<[UInt8]?> {
        do { _ = try decoder.decode(bytes.span.bytes) } catch { throw fail(error) }
        decoder.connectionDidEnd()
        return accept(bytes)
    }

    /// Ends reading after an error: the decoder may already have consumed bytes.
    private func fail(_ error: any Error) -> any Error {
        reading = nil
        hasFailed = true
        let error: any Error = if case StreamError.endedEarly = error { BodyError.endedEarly } else { error }
        return finish(error) ?? error
    }

    /// - Parameter read: the promise of the part, if there is one already.
    private func accept(_ part: [UInt8]?, by read: Promise<[UInt8]?>? = nil) -> Promise<[UInt8]?> {
        reading = nil
        do { try acceptOfWhole() } catch { return Promise(error: error) }
        if part == nil { decoder.connectionDidEnd() }
        if decoder.isComplete { finish(nil) }
        guard let part else { return decoder.isComplete ? .value(nil) : Promise(error: fail(BodyError.endedEarly)) }
        // The read brought only chunk framing, or bytes that `bytes` gathers.
        return part.isEmpty ? next() : read ?? .value(part)
    }

    /// The whole body, in one array. Until its last byte has arrived, the bytes count towards the `memoryLimit` of the
    /// listener or the pool.
    /// - Returns: a promise that is rejected as `read`.
    public func bytes() -> Promise<[UInt8]> {
        if !isReading {
            if decoder.lacks(moreThan: wholeLimit) { return Promise(error: failWhole()) }
            decoder.whole = takeLeft() ?? []
        }
        return next().map { _ in
            // From here on the program owns the bytes.
            defer { self.dropWhole() }
            return self.decoder.whole ?? []
        }
    }

    /// Later reads do not gather.
    func dropWhole() { (decoder.whole, kept) = (nil, nil) }

    /// Counts the gathered bytes.
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

    /// Calls `body` with each part; the next call follows when the promise of the previous one is fulfilled.
    /// - Returns: a promise that is fulfilled at the end, and rejected as `read` or with the error of `body`.
    @inlinable
    public func forEach<Next: Thenable<Void>>(_ body: @escaping ([UInt8]) throws -> Next) -> Promise<Void> {
        let part = read()
        if isComplete, case .success(let part?) = part.result { return firstly { try body(part).asPromise() } }
        // A loop, written as recursion: it runs in constant memory.
        return part.then { part -> Promise<Void> in
            guard let part else { return .value }
            return try body(part).asPromise().then { self.forEach(body) }
        }
    }

    /// Calls `body` with each part, without waiting between the calls; see the form with promises.
    public func forEach(_ body: @escaping ([UInt8]) throws -> Void) -> Promise<Void> {
        forEach { part -> Promise<Void> in
            try body(part)
            return .value
        }
    }

    /// Reads the rest of the body and drops it.
    func discard() -> Promise<Void> { isComplete ? .value : forEach { _ in } }
}

/// Why a body cannot be read.
public enum BodyError: Error, Hashable, Sendable {
    /// The peer has ended the connection before the end of the body.
    case endedEarly
    /// The response to the request has been sent, or the body was discarded.
    case unreadable
    /// The body was released before it was read to the end.
    case unread
}
