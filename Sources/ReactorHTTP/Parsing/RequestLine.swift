/// A request's first line, with offsets into the head: RFC 9112, section 3.
struct RequestLine {
    let method: Range<Int>
    let target: Range<Int>
    /// The target without scheme, host and query.
    let path: Range<Int>
    let isHTTP10: Bool
    let end: Int

    /// Decodes `method SP target SP version`.
    /// - Parameter start: the line's position.
    init(_ line: Bytes, at start: Int) throws(HTTPError) {
        var first = 0
        while first < line.count, isTokenByte(line[first]) { first += 1 }
        // Takes the usual version from the line's end. A space in the target is refused below.
        let second: Int
        if line.endsInUsualVersion, first > 0, first + 1 < line.count - 9, line[first] == 0x20 {
            second = line.count - 9
            isHTTP10 = false
        } else {
            guard let space = line.position(of: 0x20), let next = line.position(of: 0x20, from: space + 1) else {
                throw .bad("a request line without two spaces")
            }
            // The version comes first, because another one would change the meaning of the rest.
            isHTTP10 = try Self.isHTTP10(line.slice(next + 1..<line.count))
            second = next
            guard first > 0, first == space else { throw .bad("a method that is no token") }
        }
        method = start..<start + first
        target = start + first + 1..<start + second
        let range = try Self.path(in: line.slice(first + 1..<second))
        path = target.lowerBound + range.lowerBound..<target.lowerBound + range.upperBound
        end = start + line.count + 2
    }

    func host(in head: Bytes) -> Bytes? {
        guard path.lowerBound > target.lowerBound,
            let slash = head.position(of: UInt8(ascii: "/"), from: target.lowerBound)
        else { return nil }
        return head.slice(slash + 2..<path.lowerBound)
    }

    /// True for `HTTP/1.0`. Treats `HTTP/1.` with another digit as HTTP/1.1.
    static func isHTTP10(_ version: Bytes) throws(HTTPError) -> Bool {
        guard version.count == 8, version.slice(0..<5).isEqual(to: "HTTP/"), version[6] == UInt8(ascii: "."),
            isDigit(version[5]), isDigit(version[7])
        else { throw .bad("a version that is none of HTTP") }
        guard version[5] == UInt8(ascii: "1") else { throw HTTPError(Status(505)) }
        return version[7] == UInt8(ascii: "0")
    }

    /// Finds the path in `/path?query`, `http://host/path?query` or `*`: RFC 9112, section 3.2. Other forms are for
    /// proxies.
    private static func path(in target: Bytes) throws(HTTPError) -> Range<Int> {
        guard let first = target.first, target.isTarget else {
            throw .bad("a target with other bytes than those of a URI")
        }
        var start = 0
        if first != UInt8(ascii: "/"), first != UInt8(ascii: "*") || target.count > 1 {
            let isPlain = target.count > 7 && target.slice(0..<7).isEqual(ignoringCase: "http://")
            let isSecure = target.count > 8 && target.slice(0..<8).isEqual(ignoringCase: "https://")
            guard isPlain || isSecure else { throw .bad("a target that is neither a path nor a URI of HTTP") }
            start = isPlain ? 7 : 8
            let query = target.position(of: UInt8(ascii: "?"), from: start) ?? target.count
            let end = min(target.position(of: UInt8(ascii: "/"), from: start) ?? target.count, query)
            // Refuses an empty host and a user name: RFC 9110, sections 4.2.1 and 4.2.4.
            guard HeadFields.isHost(target.slice(start..<end)) else { throw .bad("a target without a host") }
            start = end
        }
        let end = target.position(of: UInt8(ascii: "?"), from: start) ?? target.count
        return start..<end
    }
}
