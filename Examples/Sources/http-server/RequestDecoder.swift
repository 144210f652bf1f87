import Promises

/// Decodes the heads of requests, each line once, however the packets split it. See RFC 9112.
struct RequestDecoder: FrameDecoder {
    private let limits: Limits
    private let deadline: HeadDeadline
    private var head: RequestHead?
    private var fields = HeadFields()
    /// Where the next line begins, and where the search for its end continues.
    private var start = 0
    private var searched = 0
    /// Bytes of empty lines before the head, which count for its limit.
    private var skipped = 0

    /// - Parameter deadline: is started when a part of a head has arrived, and stopped with the head.
    init(_ limits: Limits, _ deadline: HeadDeadline) {
        self.limits = limits
        self.deadline = deadline
    }

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
        searched = bytes.count
        try checkLength(bytes.count)
        if head == nil && start > 0 && start == bytes.count { return skip() }
        deadline.start()
        return .incomplete(missing: 1)
    }

    /// Refuses a head with more bytes than allowed, whether they are one line or many.
    private func checkLength(_ count: Int) throws(Status) {
        if count + skipped > limits.head { throw head == nil ? .targetTooLong : .fieldsTooLarge }
    }

    /// Behind empty lines the client is as silent as between two requests.
    private mutating func skip() -> DecodedFrame<RequestHead> {
        let (consumed, total) = (start, skipped + start)
        reset()
        skipped = total
        return .skipped(consumed: consumed)
    }

    private mutating func reset() {
        deadline.stop()
        head = nil
        fields = HeadFields()
        start = 0
        searched = 0
        skipped = 0
    }
}
