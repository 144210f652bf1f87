import Promises
import ReactorIO

/// A body that is written while it is being sent; see `Response.stream`.
public final class BodyOutput {
    /// The trailer fields, if the body is chunked: set them before the promise of the body is fulfilled.
    public var trailers = Headers()

    /// Sends what the closure appends.
    private let send: ((inout ByteWriter) -> Void) -> Promise<Void>
    /// The client's connection, which may send files itself; `nil` if it does not, or the parts go elsewhere.
    var fileOutput: Connection?
    /// The unsent head: it leaves with the first part.
    private var head: ((inout ByteWriter) -> Void)?
    /// How many bytes the message still needs, if it declares its length.
    private var left: Int?
    /// If false, and there is no length, the end of the connection ends the body: for HTTP/1.0.
    private let isChunked: Bool
    /// Whether the message has ended: later bytes would be taken for the next one.
    private var isEnded = false
    /// Why a part was not sent.
    private var failure: (any Error)?

    /// More bytes were written than the declared length, or bytes after the end.
    public struct TooMuch: Error, Hashable, Sendable {}

    init(
        _ length: Int?, isChunked: Bool, head: ((inout ByteWriter) -> Void)?,
        send: @escaping ((inout ByteWriter) -> Void) -> Promise<Void>
    ) { (left, self.isChunked, self.head, self.send) = (length, isChunked, head, send) }

    /// An output that passes its parts to `write` instead of sending them to a client: for code that transforms a
    /// stream; see `Response.body`.
    /// - Parameter write: called with each part. `BodyOutput.write` returns its promise.
    public convenience init(_ write: @escaping ([UInt8]) -> Promise<Void>) { self.init(length: nil, write) }

    convenience init(length: Int?, _ write: @escaping ([UInt8]) -> Promise<Void>) {
        self.init(length, isChunked: false, head: nil) { append in
            var part = ByteWriter()
            append(&part)
            return write(part.bytes)
        }
    }

    /// Whether nothing has been sent yet.
    var isUnsent: Bool { head != nil }

    /// Writes a part of the body.
    /// - Parameter bytes: the part; an empty one sends the head, if it has not been sent.
    /// - Returns: a promise that is fulfilled when the kernel has taken the bytes, so that a slow peer slows the writer
    ///   down. Rejected as `Connection.write`, and with `TooMuch`. It may be ignored: the end of the body fails with
    ///   the same error. Cancelling it does not take the part back, whose place would be empty.
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

    /// Remembers a failure: a queue that was full accepts later parts again.
    private func note(_ sent: Promise<Void>) {
        if case .failure(let error)? = sent.mayBeIgnored.result { failure = error }
    }

    /// Writes a part of the body as UTF-8; see the form with bytes.
    @discardableResult
    public func write(_ text: String) -> Promise<Void> { write(Array(text.utf8)) }

    /// Whether a part of a file can be sent without reading it.
    var sendsFiles: Bool { fileOutput != nil && !isChunked }

    /// Sends the beginning of a part of a file as a part of the body, as much as there is room for at once.
    /// - Returns: the number of bytes: see `Connection.sendFile`.
    func send(_ range: Range<Int>, of file: CInt) -> Int {
        guard let fileOutput, sendsFiles, !isEnded, range.count <= left ?? .max else { return 0 }
        if let head = head.take() { note(fileOutput.gather(beforeFile: head)) }
        if failure != nil { return 0 }
        let sent = fileOutput.sendFile(file, range)
        left = left.map { $0 - sent }
        return sent
    }

    /// Refuses further writes.
    func close() { isEnded = true }

    /// Ends the body.
    /// - Throws: an error if the declared length was not reached, or a part was refused: the peer must not take the
    ///   message for a complete one.
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
    /// The field that delimits the body, and the end of the head, in two steps.
    /// - Parameter length: the length of the body in bytes; `nil` if it is sent in chunks.
    mutating func append(framing length: Int?) {
        guard let length else { return append("Transfer-Encoding: chunked\r\n\r\n" as StaticString) }
        append("Content-Length: " as StaticString)
        let (text, first) = endOfHead(length: length)
        append(text.span.bytes.extracting(first..<24))
    }
}

/// The digits of a length, and the CR LF CR LF after them, which end a head.
/// - Returns: a text, and the index at which it begins.
@inline(__always)
func endOfHead(length: Int) -> (text: InlineArray<24, UInt8>, first: Int) {
    var text = InlineArray<24, UInt8>(repeating: 0)
    (text[20], text[21], text[22], text[23]) = (0x0D, 0x0A, 0x0D, 0x0A)
    // From the last digit to the first.
    var first = 20
    var rest = UInt(length)
    repeat {
        first -= 1
        text[first] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
    } while rest > 0
    return (text, first)
}
