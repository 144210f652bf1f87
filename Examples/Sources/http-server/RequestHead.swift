/// The request line and the fields of a request that decide how it is answered.
struct RequestHead {
    enum Method { case get, head, post, other }

    enum Body {
        case none
        /// Of at least one byte.
        case length(Int)
        case chunked
    }

    var method = Method.other
    /// The target without its scheme, host and query.
    var path: [UInt8] = []
    var isHTTP10 = false
    var body = Body.none
    /// Whether the client wants to send more requests on this connection.
    var keepsAlive = true
    /// Whether the client waits for `100 Continue` before it sends the body.
    var expectsContinue = false
}

extension RequestHead {
    /// Decodes `method SP target SP version`.
    init(requestLine line: Bytes) throws(Status) {
        guard let first = line.position(of: 0x20), let second = line.position(of: 0x20, from: first + 1) else {
            throw .badRequest
        }
        self.init()
        // First, since a client of another version means something else with the rest.
        try decodeVersion(line.slice(second + 1..<line.count))
        try decodeMethod(line.slice(0..<first))
        try decodeTarget(line.slice(first + 1..<second))
    }

    /// `HTTP/1.0`, or `HTTP/1.` with any other digit, which is answered as HTTP/1.1.
    private mutating func decodeVersion(_ version: Bytes) throws(Status) {
        guard version.count == 8, version.slice(0..<5).isEqual(to: "HTTP/"), version[6] == UInt8(ascii: ".")
        else {
            throw .badRequest
        }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard digits ~= version[5], digits ~= version[7] else { throw .badRequest }
        guard version[5] == UInt8(ascii: "1") else { throw .versionNotSupported }
        isHTTP10 = version[7] == UInt8(ascii: "0")
        keepsAlive = !isHTTP10
    }

    /// Methods are distinguished by case.
    private mutating func decodeMethod(_ name: Bytes) throws(Status) {
        guard !name.isEmpty, name.allSatisfy(isTokenByte) else { throw .badRequest }
        if name.isEqual(to: "GET") {
            method = .get
        } else if name.isEqual(to: "HEAD") {
            method = .head
        } else if name.isEqual(to: "POST") {
            method = .post
        }
    }

    /// Decodes `/path?query`, `http://host/path?query` and `*`. Any other form is for proxies.
    private mutating func decodeTarget(_ target: Bytes) throws(Status) {
        guard let first = target.first, target.allSatisfy({ 0x21...0x7E ~= $0 }) else { throw .badRequest }
        var start = 0
        if first != UInt8(ascii: "/"), first != UInt8(ascii: "*") || target.count > 1 {
            guard target.count > 7, target.slice(0..<7).isEqual(ignoringCase: "http://") else { throw .badRequest }
            start = target.position(of: UInt8(ascii: "/"), from: 7) ?? target.count
        }
        let end = target.position(of: UInt8(ascii: "?")) ?? target.count
        path = start < end ? Array(target.slice(start..<end)) : [UInt8(ascii: "/")]
    }
}
