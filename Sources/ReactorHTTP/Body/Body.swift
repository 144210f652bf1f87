import Promises
import Reactor

/// The body of a request or of a response, read on demand: as long as nobody reads it, the peer is slowed down.
///
/// ```swift
/// request.body.text().map { Response("you said \($0)") }
/// ```
///
/// One read at a time. A body can be read once, in parts or as a whole.
public final class Body {
    /// The number of its bytes, if the sender has said it; `nil` for a body in chunks, or until the connection ends.
    public var length: Int? { decoder.length }

    /// How many bytes the body may have; reads of a longer one are rejected with `HTTPError`: 413, and 502 in the client. At first
    /// the limit of the server, or that of the client, which is for `bytes` and `text` alone: a response that is read in parts has
    /// no limit, unless the program sets this one.
    public var limit: Int {
        get { min(decoder.limit, wholeLimit) }
        // Sums with it do not overflow.
        set { (decoder.limit, wholeLimit) = (min(max(newValue, 0), .max / 64), .max) }
    }

    /// The limit of `bytes` and `text`, where other reads have none.
    private var wholeLimit = Int.max

    /// The fields behind a body in chunks, once it has been read.
    public var trailers: Headers { decoder.trailers }

    /// Whether all of it has been read.
    public var isComplete: Bool { decoder.isComplete }

    /// Whether what is left of it can be read.
    var isReadable: Bool { connection != nil && decoder.excess == nil }

    /// Whether a read has failed.
    private(set) var hasFailed = false
    /// Whether a read has been made.
    private(set) var hasBegun = false
    /// Tells the peer to send the body, before the first read.
    var beforeFirstRead: ((Connection) -> Promise<Void>)?

    /// A read that waits, which a second one may not join.
    private var reading: Promise<[UInt8]?>?
    /// Whether a read waits.
    var isReading: Bool { reading?.isPending == true }

    let decoder: BodyDecoder
    /// `nil` when nothing more can be read.
    private var connection: Connection?
    /// What is read instead, of a body that no client sends.
    private var content: Content?
    /// Called once when the body is complete, with nil, or will never be. Returns the error of the read.
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

    /// No further reads.
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

    /// The next part, as it has arrived; never empty. `nil` at the end.
    ///
    /// Rejected with
    /// - `HTTPError` if the body is longer than `limit`, or not valid;
    /// - `StreamError.timedOut` at a limit of time of the server, and `FetchError.timedOut` at one of the client;
    /// - `BodyError.endedEarly` if the peer ends before;
    /// - `BodyError.unreadable` once the response to the request has been sent;
    /// - the `SystemError` of the connection.
    ///
    /// After an error the message cannot be continued: its connection ends.
    public func read() -> Promise<[UInt8]?> {
        if decoder.isComplete { return .value(nil) }
        guard let connection else {
            guard let content = content.take() else { return Promise(error: BodyError.unreadable) }
            return content.bytes().then { try self.acceptAll($0) }
        }
        // Before the client is told to continue, and without waiting for a byte of it.
        if let error = decoder.excess { return Promise(error: fail(error)) }
        hasBegun = true
        if let beforeFirstRead {
            self.beforeFirstRead = nil
            return beforeFirstRead(connection).then { self.read() }
        }
        let part = connection.readFrame(decoder)
        // It has usually arrived with the head.
        switch part.result {
        case .success(let part): return accept(part)
        case .failure(let error): return Promise(error: fail(error))
        case nil:
            // Not of a read that was refused since another one waits.
            if !isReading { reading = part }
            return part.mapError(policy: .allErrors) { self.fail($0) }.then { self.accept($0) }
        }
    }

    private func acceptAll(_ bytes: [UInt8]) throws -> Promise<[UInt8]?> {
        do { _ = try decoder.decode(bytes.span.bytes) } catch { throw fail(error) }
        decoder.connectionDidEnd()
        return accept(bytes)
    }

    /// Ends the reading: the decoder may have gone on through bytes that are still there.
    private func fail(_ error: any Error) -> any Error {
        reading = nil
        hasFailed = true
        let error: any Error = if case StreamError.endedEarly = error { BodyError.endedEarly } else { error }
        return finish(error) ?? error
    }

    private func accept(_ part: [UInt8]?) -> Promise<[UInt8]?> {
        reading = nil
        if part == nil { decoder.connectionDidEnd() }
        if decoder.isComplete { finish(nil) }
        guard let part else { return decoder.isComplete ? .value(nil) : Promise(error: fail(BodyError.endedEarly)) }
        // The framing of a chunk, without bytes of the body.
        return part.isEmpty ? read() : .value(part)
    }

    /// All bytes, in one array. Until the last of them has arrived, they count in the `memoryLimit` of the listener or the pool.
    /// - Returns: a promise that is rejected as `read`.
    public func bytes() -> Promise<[UInt8]> {
        if let length, length > wholeLimit { return Promise(error: failWhole()) }
        return read().then { first -> Promise<[UInt8]> in
            if let first, first.count > self.wholeLimit { throw self.failWhole() }
            guard var all = first, !self.isComplete else { return .value(first ?? []) }
            let kept = self.connection.flatMap { KeptBytes(all.capacity, of: $0) }
            return self.forEach { part in
                if part.count > self.wholeLimit - all.count { throw self.failWhole() }
                all.makeRoom(for: part.count, of: self.length.map { $0 - all.count })
                all += part
                kept?.count = all.capacity
            }.map {
                // From here on they are the program's.
                kept?.count = 0
                return all
            }
        }
    }

    /// Of the client only.
    private func failWhole() -> any Error {
        fail(HTTPError(Status(502), "a body of more than \(wholeLimit) bytes: read it in parts, or set its limit"))
    }

    /// All of it as text. Bytes that are not UTF-8 are replaced.
    /// - Returns: a promise that is rejected as `read`.
    public func text() -> Promise<String> { bytes().map { String(decoding: $0, as: UTF8.self) } }

    /// Calls `body` with each part, the next one when the promise of the call before is fulfilled.
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

    /// Reads what is left, and drops it.
    func discard() -> Promise<Void> { isComplete ? .value : forEach { _ in } }
}

/// Why a body cannot be read.
public enum BodyError: Error, Hashable, Sendable {
    /// The peer has ended the connection before the end of the body.
    case endedEarly
    /// The response to the request has been sent, or the body was given up.
    case unreadable
    /// The body was released before it was read to its end.
    case unread
}
