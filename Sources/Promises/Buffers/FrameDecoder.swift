/// The frame that a read waits for.
enum FrameDecoder {
    case exactly(Int)
    case until([UInt8], limit: Int)
    case line(limit: Int)

    /// The result of a decoding step, with one case for each type of value that a promise may be waiting for.
    enum Answer {
        case bytes([UInt8])
        case delimited([UInt8]?)
        case line(String?)
        case refused(any Error)
        /// The frame is not complete yet.
        case wanting
    }

    /// Whether a read at the end of the stream succeeds, with nil.
    var mayBeMissing: Bool {
        if case .exactly = self { false } else { true }
    }

    /// The result of such a read.
    var nothing: Answer {
        switch self {
        case .exactly: .wanting
        case .until: .delimited(nil)
        case .line: .line(nil)
        }
    }

    var expectation: StreamError.Expectation {
        switch self {
        case .exactly(let count): .bytes(count)
        case .until(let delimiter, _): .delimiter(delimiter)
        case .line: .delimiter([0x0A])
        }
    }

    /// How many more bytes to request from the kernel. For a large frame, no more than are missing: then the array that
    /// gathers them can be returned itself. With a small frame the next frames are read too: copying them costs less
    /// than a call.
    func bytesNeeded(_ input: InputBuffer) -> Int {
        if case .exactly(let count) = self, count - input.count > Self.largestReadAhead {
            count - input.count
        } else {
            .max
        }
    }

    private static var largestReadAhead: Int { 4096 }

    /// Takes the frame out of `input`, if it is complete.
    func answer(_ input: inout InputBuffer) -> Answer {
        switch self {
        case .exactly(let count): return input.count < count ? .wanting : .bytes(input.take(count))
        case .until(let delimiter, let limit):
            guard let end = input.position(of: delimiter) else {
                // No delimiter can begin within the limit any more.
                let isTooLong = input.count - delimiter.count >= limit
                return isTooLong ? .refused(StreamError.limitExceeded(limit: limit)) : .wanting
            }
            if end > limit { return .refused(StreamError.limitExceeded(limit: limit)) }
            let bytes = input.take(end)
            input.drop(delimiter.count)
            return .delimited(bytes)
        case .line(let limit): return line(limit, &input)
        }
    }

    private func line(_ limit: Int, _ input: inout InputBuffer) -> Answer {
        let newline = input.position(of: [0x0A])
        let end = newline ?? input.count
        let hasReturn = end > 0 && input[end - 1] == 0x0D
        let length = hasReturn ? end - 1 : end
        if length > limit { return .refused(StreamError.limitExceeded(limit: limit)) }
        guard newline != nil else { return .wanting }
        let text = input.with(first: length) { String(validating: $0, as: UTF8.self) }
        guard let text else {
            let position = input.with(first: length, Self.validPrefix)
            return .refused(StreamError.notUTF8(position: position))
        }
        input.drop(end + 1)
        return .line(text)
    }

    /// How many bytes at the front are valid UTF-8.
    private static func validPrefix(_ bytes: UnsafeRawBufferPointer) -> Int {
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var count = 0
        while case .valid(let scalar) = parser.parseScalar(from: &iterator) { count += scalar.count }
        return count
    }
}
