import Promises

/// A body that is written while it is sent; see `Response.stream`.
public final class BodyOutput {
    /// The fields behind the body, if it is sent in chunks: set them before the promise of the body is fulfilled.
    public var trailers = Headers()

    /// Writes what a closure appends, to the peer.
    private let send: ((inout ByteWriter) -> Void) -> Promise<Void>
    /// What has not been sent yet: it leaves with the first part.
    private var head: ((inout ByteWriter) -> Void)?
    /// How many bytes the message still needs, if it says so.
    private var left: Int?
    /// Otherwise, and without a length, the end of the connection ends the body: for HTTP/1.0.
    private let isChunked: Bool
    /// Whether the message is over: what comes later would be part of the next one.
    private var isEnded = false
    /// Why a part is missing.
    private var failure: (any Error)?

    /// More bytes were written than the length of the message says, or bytes behind its end.
    public struct TooMuch: Error, Hashable, Sendable {}

    init(
        _ length: Int?, isChunked: Bool, head: ((inout ByteWriter) -> Void)?,
        send: @escaping ((inout ByteWriter) -> Void) -> Promise<Void>
    ) { (left, self.isChunked, self.head, self.send) = (length, isChunked, head, send) }

    /// An output whose parts `write` gets instead of a client: for what changes the parts of a stream on their way; see
    /// `Response.body`.
    /// - Parameter write: called with each part. Its promise is that of `BodyOutput.write`.
    public convenience init(_ write: @escaping ([UInt8]) -> Promise<Void>) { self.init(length: nil, write) }

    convenience init(length: Int?, _ write: @escaping ([UInt8]) -> Promise<Void>) {
        self.init(length, isChunked: false, head: nil) { append in
            var part = ByteWriter()
            append(&part)
            return write(part.bytes)
        }
    }

    /// Whether nothing has been sent.
    var isUnsent: Bool { head != nil }

    /// Writes a part of the body.
    /// - Parameter bytes: the part; an empty one sends the head, if that has not left.
    /// - Returns: a promise that is fulfilled when the kernel has taken the bytes, so that a slow peer slows the writer
    ///   down. Rejected as `Connection.write`, and with `TooMuch`. It may be ignored: the end of the body fails as it does.
    @discardableResult
    public func write(_ bytes: [UInt8]) -> Promise<Void> {
        if isEnded || bytes.count > left ?? .max { return Promise(error: TooMuch()) }
        left = left.map { $0 - bytes.count }
        let head = head.take()
        let sent = send { output in
            head?(&output)
            if bytes.isEmpty { return }
            if isChunked { output.append("\(String(bytes.count, radix: 16))\r\n") }
            output.append(bytes)
            if isChunked { output.append("\r\n") }
        }
        if sent.isFulfilled { return sent }
        // A queue that is full takes later parts again.
        if case .failure(let error)? = sent.result { failure = error }
        return sent.mayBeIgnored
    }

    /// Writes a part of the body in UTF-8; see the form with bytes.
    @discardableResult
    public func write(_ text: String) -> Promise<Void> { write(Array(text.utf8)) }

    /// Refuses further writes.
    func close() { isEnded = true }

    /// Ends the body.
    /// - Throws: an error if the length was not reached, or a part was refused: the peer must not take the message for a whole
    ///   one.
    func finish() throws -> Promise<Void> {
        defer { close() }
        if let failure { throw failure }
        if let left, left > 0 { throw BodyError.endedEarly }
        if !isChunked { return head == nil ? .value : write([UInt8]()) }
        let head = head.take()
        return send { [trailers] output in
            head?(&output)
            output.append("0\r\n")
            output.append(trailers, without: ["content-length", "transfer-encoding", "host", "trailer"])
            output.append("\r\n")
        }
    }
}

extension ByteWriter {
    /// The field that says where the body ends, and the end of the head, in two steps.
    /// - Parameter length: the number of its bytes; `nil` if it is sent in chunks.
    mutating func append(framing length: Int?) {
        guard let length else { return append("Transfer-Encoding: chunked\r\n\r\n" as StaticString) }
        append("Content-Length: " as StaticString)
        var text = InlineArray<24, UInt8>(repeating: 0)
        // CR LF CR LF, and the digits before them, from the last to the first.
        var first = 20
        (text[20], text[21], text[22], text[23]) = (0x0D, 0x0A, 0x0D, 0x0A)
        var rest = UInt(length)
        repeat {
            first -= 1
            text[first] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        } while rest > 0
        append(text.span.bytes.extracting(first..<24))
    }
}
