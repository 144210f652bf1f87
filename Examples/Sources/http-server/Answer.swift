/// The bytes of an answer: its head, and as much of its body as there is.
struct Answer {
    enum BodyLength {
        case known(Int)
        /// The body is sent in chunks.
        case unknown
    }

    enum Connection { case close, keepAlive }

    private(set) var bytes: [UInt8] = []

    /// The head of an answer.
    /// - Parameters:
    ///   - connection: is written where it is not what the client's version expects anyway.
    ///   - fields: further fields, each with its CR LF.
    init(_ status: Status, _ length: BodyLength, _ connection: Connection?, date: [UInt8], fields: StaticString = "") {
        bytes.reserveCapacity(256)
        append(status.line)
        bytes.append(contentsOf: date)
        append("Content-Type: text/plain\r\n")
        append(fields)
        switch connection {
        case .close: append("Connection: close\r\n")
        case .keepAlive: append("Connection: keep-alive\r\n")
        case nil: break
        }
        switch length {
        case .known(let count):
            append("Content-Length: ")
            append(count, radix: 10)
            append("\r\n\r\n")
        case .unknown: append("Transfer-Encoding: chunked\r\n\r\n")
        }
    }

    /// No head: what follows a part that is written already.
    init() {}

    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// A number that is not negative, with digits in lower case.
    private mutating func append(_ number: Int, radix: Int) {
        if number >= radix { append(number / radix, radix: radix) }
        let digit = UInt8(number % radix)
        bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit)
    }

    /// Appends a part of the body.
    mutating func append(part: [UInt8]) { bytes.append(contentsOf: part) }

    /// Appends a part of the body as a chunk; an empty one would end the body.
    mutating func append(chunk: [UInt8]) {
        if chunk.isEmpty { return }
        append(chunk.count, radix: 16)
        append("\r\n")
        bytes.append(contentsOf: chunk)
        append("\r\n")
    }

    mutating func appendLastChunk() { append("0\r\n\r\n") }
}
