import Promises
import ReactorIO

/// A body written while it is being sent; see `Response.stream`.
public final class BodyOutput {
    /// A chunked body's trailer fields, to be set before the body's promise is fulfilled.
    public var trailers = Headers()

    /// Sends the bytes that its argument writes.
    private let send: ((inout ByteWriter) -> Void) -> Promise<Void>
    /// The client's connection if the parts go there and it can send files itself; otherwise `nil`.
    var fileOutput: Connection?
    /// The unsent head, sent with the first part.
    private var head: ((inout ByteWriter) -> Void)?
    /// The number of bytes missing from the declared length.
    private var left: Int?
    /// True for chunks. If false without a length, closing the connection ends the body (HTTP/1.0).
    private let isChunked: Bool
    /// True when the message has ended: later bytes would belong to the next message.
    private var isEnded = false
    private var failure: (any Error)?

    /// The error for bytes beyond the declared length or after the body's end.
    public struct TooMuch: Error, Hashable, Sendable {}

    init(
        _ length: Int?, isChunked: Bool, head: ((inout ByteWriter) -> Void)?,
        send: @escaping ((inout ByteWriter) -> Void) -> Promise<Void>
    ) { (left, self.isChunked, self.head, self.send) = (length, isChunked, head, send) }

    /// Passes the parts to `write` instead of a client, to transform a stream; see `Response.body`.
    /// - Parameter write: called with each part. `BodyOutput.write` returns its promise.
    public convenience init(_ write: @escaping ([UInt8]) -> Promise<Void>) { self.init(length: nil, write) }

    convenience init(length: Int?, _ write: @escaping ([UInt8]) -> Promise<Void>) {
        self.init(length, isChunked: false, head: nil) { append in
            var part = ByteWriter()
            append(&part)
            return write(part.bytes)
        }
    }

    var isUnsent: Bool { head != nil }

    /// Writes a part of the body.
    /// - Parameter bytes: the part; an empty one sends only an unsent head.
    /// - Returns: a promise that is fulfilled when the kernel has taken the bytes, so a slow peer slows the writer.
    ///   Rejected with the same errors as `Connection.write`, or `TooMuch`. It may be ignored, because the body's end
    ///   fails with the same error. Cancelling it does not withdraw the part, since that would leave a gap.
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
        note(sent)
        return sent.isPending ? sent.map { $0 }.mayBeIgnored : sent
    }

    /// Records a failure for `finish`, because a full queue may accept later parts.
    private func note(_ sent: Promise<Void>) {
        if case .failure(let error)? = sent.mayBeIgnored.result { failure = error }
    }

    /// Writes a part as UTF-8; see the overload for bytes.
    @discardableResult
    public func write(_ text: String) -> Promise<Void> { write(Array(text.utf8)) }

    /// True when a part of a file can be sent without reading it.
    var sendsFiles: Bool { fileOutput != nil && !isChunked }

    /// Sends as much of `range` as there is room for.
    /// - Returns: the number of bytes sent: see `Connection.sendFile`.
    func send(_ range: Range<Int>, of file: CInt) -> Int {
        guard let fileOutput, sendsFiles, !isEnded, range.count <= left ?? .max else { return 0 }
        if let head = head.take() { note(fileOutput.gather(beforeFile: head)) }
        if failure != nil { return 0 }
        let sent = fileOutput.sendFile(file, range)
        left = left.map { $0 - sent }
        return sent
    }

    func close() { isEnded = true }

    /// - Throws: an error if the declared length was not reached, or a part was refused, so that the peer does not take
    ///   the message for complete.
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
    /// Appends the field that delimits the body and the end of the head, in two writes.
    /// - Parameter length: the body's length in bytes; `nil` for chunks.
    mutating func append(framing length: Int?) {
        guard let length else { return append("Transfer-Encoding: chunked\r\n\r\n" as StaticString) }
        append("Content-Length: " as StaticString)
        let (text, first) = endOfHead(length: length)
        append(text.span.bytes.extracting(first..<24))
    }
}

/// Formats a length, followed by the CR LF CR LF that ends a head.
/// - Returns: the text, and the index of its first byte.
@inline(__always)
func endOfHead(length: Int) -> (text: InlineArray<24, UInt8>, first: Int) {
    var text = InlineArray<24, UInt8>(repeating: 0)
    (text[20], text[21], text[22], text[23]) = (0x0D, 0x0A, 0x0D, 0x0A)
    var first = 20
    var rest = UInt(length)
    repeat {
        first -= 1
        text[first] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
    } while rest > 0
    return (text, first)
}
