import Promises

/// Decodes the heads of requests, each line once, however the packets split it. See RFC 9112.
struct RequestDecoder: FrameDecoder {
    private let limits: Limits
    private var head: RequestHead?
    private var fields = HeadFields()
    /// Where the next line begins, and where the search for its end continues.
    private var start = 0
    private var searched = 0
    /// Bytes of the empty lines before the head. They are no part of it, and begin no time limit.
    private var skipped = 0

    init(_ limits: Limits) { self.limits = limits }

    mutating func decode(_ bytes: RawSpan) throws -> DecodedFrame<RequestHead> {
        // The bytes are lent for the call, and nothing keeps the pointer.
        try bytes.withUnsafeBytes { bytes throws(Status) in try decode(bytes) }
    }

    private mutating func decode(_ bytes: Bytes) throws(Status) -> DecodedFrame<RequestHead> {
        while let end = try bytes.endOfLine(from: start, searchingFrom: searched) {
            try checkLength(end)
            let line = bytes.slice(start..<end)
            start = end + 2
            searched = start
            if !line.isEmpty {
                if head == nil { head = try RequestHead(requestLine: line) } else { try fields.add(line) }
            } else if let head {
                let (complete, consumed) = (try fields.complete(head), start)
                reset()
                return .frame(complete, consumed: consumed)
            }
            // Some clients send an empty line behind a body: RFC 9112, section 2.2.
        }
        if head == nil && start > 0 {
            try checkLength(start)
            skipped += start
            defer { (start, searched) = (0, 0) }
            return .skipped(consumed: start)
        }
        searched = bytes.count
        try checkLength(bytes.count)
        return .incomplete(missing: 1)
    }

    /// Refuses a head with more bytes than allowed, whether they are one line or many.
    private func checkLength(_ count: Int) throws(Status) {
        if skipped + count > limits.head { throw head == nil ? .targetTooLong : .fieldsTooLarge }
    }

    private mutating func reset() {
        head = nil
        fields = HeadFields()
        start = 0
        searched = 0
        skipped = 0
    }
}
