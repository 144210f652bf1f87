import Promises

/// The content after the head of a message.
enum Content {
    case text(String)
    case bytes([UInt8])
    /// Of this length, or chunked if `nil`.
    case stream(length: Int?, (BodyOutput) throws -> Promise<Void>)
    /// Another protocol; responses only.
    case upgrade(String, (Connection) throws -> Promise<Void>)

    /// The length in bytes; `nil` where only the end delimits it.
    var length: Int? {
        switch self {
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .stream(let length, _): length
        case .upgrade: nil
        }
    }

    /// The whole content, as a peer would receive it.
    func bytes() -> Promise<[UInt8]> {
        switch self {
        case .text(let text): return .value(Array(text.utf8))
        case .bytes(let bytes): return .value(bytes)
        case .stream(let length, let body):
            var all: [UInt8] = []
            let output = BodyOutput(length: length) { part in
                all += part
                return .value
            }
            return firstly { try body(output) }.then { try output.finish() }.map { all }
        case .upgrade: return .value([])
        }
    }
}

extension Response {
    /// The body of a response.
    public enum Body {
        /// The whole body.
        case bytes([UInt8])
        /// Of this length, or chunked if that is `nil`; written by the closure, which is called once. See
        /// `Response.stream`.
        case stream(length: Int?, (BodyOutput) throws -> Promise<Void>)

        /// The whole body in one array, without a size limit: for a cache or a test.
        /// - Returns: a promise that is rejected if a client would get an incomplete response: with the error of the
        ///   closure, with `BodyOutput.TooMuch`, or with `BodyError.endedEarly`.
        public func bytes() -> Promise<[UInt8]> {
            switch self {
            case .bytes(let bytes): Content.bytes(bytes).bytes()
            case .stream(let length, let body): Content.stream(length: length, body).bytes()
            }
        }

        /// The whole body as text. Invalid UTF-8 is replaced.
        /// - Returns: a promise that is rejected as `bytes`.
        public func text() -> Promise<String> { bytes().map { String(decoding: $0, as: UTF8.self) } }
    }

    /// The body; `nil` for an upgrade. Replacing it changes the length in the head. A stream that replaces another one
    /// can compress while sending:
    ///
    /// ```swift
    /// if case .stream(_, let body)? = response.body {
    ///     response.body = .stream(length: nil) { output in
    ///         try body(BodyOutput { output.write(compressor.add($0)) }).then { output.write(compressor.end()) }
    ///     }
    /// }
    /// ```
    public var body: Body? {
        get {
            switch content {
            case .text(let text): .bytes(Array(text.utf8))
            case .bytes(let bytes): .bytes(bytes)
            case .stream(let length, let body): .stream(length: length, body)
            case .upgrade: nil
            }
        }
        set {
            switch newValue {
            case .bytes(let bytes): content = .bytes(bytes)
            case .stream(let length, let body): content = .stream(length: length, body)
            case nil: content = .text("")
            }
        }
    }
}

extension Connection {
    /// Sends a head and then the content, as far as it is in memory.
    func write(_ content: Content?, behind head: (inout ByteWriter) -> Void) -> Promise<Void> {
        if case .bytes(let bytes)? = content, bytes.count >= 16_384 {
            // A large body is sent without a copy.
            return write { output in
                head(&output)
                output.append(SharedBytes(bytes))
            }
        }
        return write { output in
            head(&output)
            switch content {
            case .text(let text): output.append(text)
            case .bytes(let bytes): output.append(bytes)
            case .stream, .upgrade, nil: break
            }
        }
    }
}
