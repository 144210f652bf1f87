import Promises
import ReactorIO

/// Reads the body's next part, and retains the body meanwhile.
struct BodyReader: FrameDecoder {
    let body: Body

    func decode(_ bytes: RawSpan) throws -> DecodedFrame<[UInt8]> { try body.decoder.decode(bytes) }

    var heldBytes: Int { body.decoder.heldBytes }
}

/// Strips a body's chunk framing, part by part as bytes arrive: RFC 9112, sections 6 and 7.
struct BodyDecoder {
    private enum State {
        /// Inside the body or a chunk.
        case data(left: Int)
        case endOfChunk, chunkSize, trailers, complete
    }

    let length: Int?
    private let isChunked: Bool
    private var state: State
    private var total = 0
    private var trailerBytes = 0
    /// The number of bytes in chunk extensions, blanks before them, and leading zeros of sizes.
    private var extensionBytes = 0
    private let maxHead: Int
    /// A response's raw trailer lines, which may need `normalized`; `nil` for a request.
    private var trailerLines: [UInt8]?
    var limit = 0
    private(set) var trailers = Headers()
    /// The bytes gathered for `Body.bytes`, which leaves the parts empty; otherwise `nil`.
    var whole: [UInt8]?
}

extension BodyDecoder {
    /// - Parameter maxHead: the trailers' maximum size in bytes.
    init(_ framing: Framing, maxHead: Int, isOfResponse: Bool) {
        let (length, state): (Int?, State) =
            switch framing {
            case .none: (0, .complete)
            case .length(let count): (count, .data(left: count))
            case .chunked: (nil, .chunkSize)
            case .untilEnd: (nil, .data(left: .max))
            }
        // Any initializer but the memberwise one would copy its result.
        self = BodyDecoder(
            length: length, isChunked: framing == .chunked, state: state, maxHead: maxHead,
            trailerLines: isOfResponse ? [] : nil)
    }

    var isComplete: Bool { if case .complete = state { true } else { false } }

    var heldBytes: Int { trailers.lines.capacity }

    /// The maximum bytes in the line before a chunk.
    private static var maxChunkLine: Int { 256 }

    mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<[UInt8]> {
        // The bytes are lent for the call, and nothing keeps the pointer.
        try bytes.withUnsafeBytes { bytes throws(HTTPError) in try decode(bytes) }
    }

    private mutating func decode(_ bytes: Bytes) throws(HTTPError) -> DecodedFrame<[UInt8]> {
        if let excess { throw excess }
        var part: [UInt8] = []
        var position = 0
        while try advance(bytes, &position, &part) {}
        return position == 0 ? .incomplete(missing: 1) : .frame(part, consumed: position)
    }

    mutating func takeRest(from connection: Connection) -> [UInt8]? {
        guard case .data(let left) = state, !isChunked, left > 0, let rest = connection.takeArrived(left) else {
            return nil
        }
        state = .complete
        return rest
    }

    /// The error for a declared length above the limit.
    var excess: HTTPError? { lacks(moreThan: limit) ? tooLarge : nil }

    /// True when more than `limit` bytes are declared and still to come.
    func lacks(moreThan limit: Int) -> Bool {
        if case .data(let left) = state, !isChunked, left < .max { left > limit } else { false }
    }

    private var tooLarge: HTTPError { HTTPError(.contentTooLarge, "a body of more than \(limit) bytes") }

    /// - Returns: false if more input is needed or the body is complete.
    private mutating func advance(
        _ bytes: Bytes, _ position: inout Int, _ part: inout [UInt8]
    ) throws(HTTPError) -> Bool {
        switch state {
        case .complete: return false
        case .data(let left):
            let count = min(left, bytes.count - position)
            take(bytes.slice(position..<position + count), of: left, &part)
            position += count
            if left == .max {
                total += count
                if total > limit { throw tooLarge }
                return false
            }
            if count < left {
                state = .data(left: left - count)
                return false
            }
            state = isChunked ? .endOfChunk : .complete
        case .endOfChunk:
            guard let line = try nextLine(bytes, &position, limit: 0) else { return false }
            guard line.isEmpty else { throw .bad("bytes behind a chunk") }
            state = .chunkSize
        case .chunkSize:
            guard let line = try nextLine(bytes, &position, limit: Self.maxChunkLine) else { return false }
            let size = try chunkSize(line)
            // Counts all bytes but the size's digits. No proxy sends extensions longer than the body.
            extensionBytes += line.count - (Int.bitWidth - size.leadingZeroBitCount + 3) / 4
            if extensionBytes > maxHead + total { throw .bad("extensions of chunks that are longer than the body") }
            if size > limit - total { throw tooLarge }
            total += size
            state = size == 0 ? .trailers : .data(left: size)
        case .trailers:
            guard let line = try nextLine(bytes, &position, limit: maxHead) else { return false }
            trailerBytes += line.count + 2
            if trailerBytes > maxHead { throw HTTPError(Status(431), "trailers of more than \(maxHead) bytes") }
            if line.isEmpty {
                if let trailerLines { try appendTrailers(trailerLines.withUnsafeBytes { $0.normalized }) }
                state = .complete
            } else if trailerLines != nil {
                trailerLines! += line
                trailerLines! += [0x0D, 0x0A]
            } else {
                try appendTrailer(line)
            }
        }
        return true
    }

    /// - Parameter left: the body's or chunk's remaining bytes, including these; `.max` if unknown.
    private mutating func take(_ bytes: Bytes, of left: Int, _ part: inout [UInt8]) {
        if whole == nil {
            // A part is usually one run of bytes; a growing array would take more memory.
            if part.isEmpty { part = [UInt8](bytes) } else { part.append(contentsOf: bytes) }
            return
        }
        // Making exact room for each chunk would move all earlier chunks.
        whole!.makeRoom(for: bytes.count, of: isChunked || left == .max ? nil : left)
        whole!.append(contentsOf: bytes)
    }

    private mutating func appendTrailers(_ lines: [UInt8]) throws(HTTPError) {
        // The pointers lie within the array, and nothing keeps them after the call.
        try lines.span.bytes.withUnsafeBytes { lines throws(HTTPError) in
            var start = 0
            while let end = lines.position(of: 0x0A, from: start) {
                try appendTrailer(lines.slice(start..<end - 1))
                start = end + 1
            }
        }
    }

    private mutating func appendTrailer(_ line: Bytes) throws(HTTPError) {
        let colon = try HeadFields.nameLength(line)
        trailers.append(line.slice(0..<colon).text, line.slice(colon + 1..<line.count).trimmed.text)
    }

    private func nextLine(_ bytes: Bytes, _ position: inout Int, limit: Int) throws(HTTPError) -> Bytes? {
        let end = try bytes.endOfLine(from: position, searchingFrom: position)
        // The CR may arrive before its LF.
        if (end ?? bytes.count - 1) - position > limit { throw .bad("a line that is too long in a body") }
        guard let end else { return nil }
        defer { position = end + 2 }
        return bytes.slice(position..<end)
    }

    /// Parses hexadecimal digits and ignores a chunk extension.
    private func chunkSize(_ line: Bytes) throws(HTTPError) -> Int {
        guard line.isValue else { throw .bad("a control character before a chunk") }
        let end = line.position(of: UInt8(ascii: ";")) ?? line.count
        let digits = end < line.count ? line.slice(0..<end).trimmed : line
        // Refuses a blank before the digits.
        guard let first = digits.first, first == line[0] else { throw .bad("a chunk without a size") }
        var size = 0
        for byte in digits {
            guard let digit = hexadecimal(byte) else { throw .bad("a size of a chunk that is no hexadecimal number") }
            size = size << 4 | digit
            if size > limit { throw tooLarge }
        }
        return size
    }

    /// Completes a body without a length at the connection's end.
    mutating func connectionDidEnd() { if case .data(.max) = state { state = .complete } }
}
