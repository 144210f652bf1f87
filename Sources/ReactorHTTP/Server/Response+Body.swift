import Promises
import ReactorIO

extension Response {
    /// A response's body.
    public enum Body {
        /// The whole body.
        case bytes([UInt8])
        /// A body of this length, or chunked if `nil`. The closure, called once, writes it. See `Response.stream`.
        case stream(length: Int?, (BodyOutput) throws -> Promise<Void>)

        /// Reads the whole body into one array, without a limit, for a cache or a test.
        /// - Returns: a promise that is rejected if a client would get an incomplete response: with the closure's
        ///   error, `BodyOutput.TooMuch` or `BodyError.endedEarly`.
        public func bytes() -> Promise<[UInt8]> {
            switch self {
            case .bytes(let bytes): Content.bytes(bytes).bytes()
            case .stream(let length, let body): Content.stream(length: length, body).bytes()
            }
        }

        /// Reads the whole body as text, replacing invalid UTF-8.
        /// - Returns: a promise with the same errors as `bytes`.
        public func text() -> Promise<String> { bytes().map { String(decoding: $0, as: UTF8.self) } }
    }

    /// The body; `nil` for an upgrade. Replacing it changes the length in the head. A stream that replaces another can
    /// compress while sending:
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
