import Promises

/// Decodes the body of one request in parts, as large as they have arrived, without the framing of chunks. A class, since
/// its state is that of the body, and each part is a read of its own.
final class BodyDecoder: FrameDecoder {
    private enum State {
        /// Bytes of the body, or of a chunk.
        case data(left: Int)
        case endOfChunk, chunkSize, trailers, complete
    }

    private let limits: Limits
    private let isChunked: Bool
    private var state: State
    private var total = 0
    private var trailerBytes = 0

    init(_ body: RequestHead.Body, _ limits: Limits) throws(Status) {
        self.limits = limits
        switch body {
        case .none: (isChunked, state) = (false, .complete)
        case .length(let length): (isChunked, state) = (false, .data(left: length))
        case .chunked: (isChunked, state) = (true, .chunkSize)
        }
        if case .length(let length) = body, length > limits.body { throw .contentTooLarge }
    }

    /// Whether all of the body has been read.
    var isComplete: Bool { if case .complete = state { true } else { false } }

    func decode(_ bytes: RawSpan) throws -> DecodedFrame<[UInt8]> {
        // The bytes are lent for the call, and nothing keeps the pointer.
        try bytes.withUnsafeBytes { bytes throws(Status) in try decode(bytes) }
    }

    private func decode(_ bytes: Bytes) throws(Status) -> DecodedFrame<[UInt8]> {
        var part: [UInt8] = []
        var position = 0
        while try advance(bytes, &position, &part) {}
        return position == 0 ? .incomplete(missing: 1) : .frame(part, consumed: position)
    }

    /// Takes one step.
    /// - Returns: false if it needs more bytes, or if the body is complete.
    private func advance(_ bytes: Bytes, _ position: inout Int, _ part: inout [UInt8]) throws(Status) -> Bool {
        switch state {
        case .complete: return false
        case .data(let left):
            let count = min(left, bytes.count - position)
            part.append(contentsOf: bytes[position..<position + count])
            position += count
            if count < left {
                state = .data(left: left - count)
                return false
            }
            state = isChunked ? .endOfChunk : .complete
        case .endOfChunk:
            guard let line = try nextLine(bytes, &position, limit: 0) else { return false }
            guard line.isEmpty else { throw .badRequest }
            state = .chunkSize
        case .chunkSize:
            guard let line = try nextLine(bytes, &position, limit: Limits.chunkLine) else { return false }
            let size = try chunkSize(line)
            total += size
            if total > limits.body { throw .contentTooLarge }
            state = size == 0 ? .trailers : .data(left: size)
        case .trailers:
            guard let line = try nextLine(bytes, &position, limit: limits.head) else { return false }
            trailerBytes += line.count
            if trailerBytes > limits.head { throw .fieldsTooLarge }
            // Trailers are checked, and not used.
            if line.isEmpty { state = .complete } else { _ = try HeadFields.split(line) }
        }
        return true
    }

    private func nextLine(_ bytes: Bytes, _ position: inout Int, limit: Int) throws(Status) -> Bytes? {
        let end = try bytes.endOfLine(from: position, searchingFrom: position)
        // The CR of the end may have arrived without the LF.
        if (end ?? bytes.count - 1) - position > limit { throw .badRequest }
        guard let end else { return nil }
        defer { position = end + 2 }
        return bytes.slice(position..<end)
    }

    /// Hexadecimal digits, behind which there may be an extension, which means nothing here.
    private func chunkSize(_ line: Bytes) throws(Status) -> Int {
        guard line.allSatisfy(isValueByte) else { throw .badRequest }
        let end = line.position(of: UInt8(ascii: ";")) ?? line.count
        let digits = end < line.count ? line.slice(0..<end).trimmed : line
        // No blank before them.
        guard let first = digits.first, first == line[0] else { throw .badRequest }
        var size = 0
        for byte in digits {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else { throw .badRequest }
            size = size << 4 | digit
            if size > limits.body { throw .contentTooLarge }
        }
        return size
    }
}
