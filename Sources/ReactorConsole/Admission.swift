import ReactorHTTP

/// Decides which requests are answered.
///
/// Any page can make a browser send requests. Another site's page can read the answers only if its host name leads to
/// this machine (DNS rebinding), hence the check of `Host`. It can always send a POST, hence the check of `Origin`.
struct Admission {
    let token: String?

    enum Answer { case admitted, wrongHost, otherSite, noToken }

    func answer(to headers: Headers, host: String?) -> Answer {
        // With a token the host does not matter: a browser sends a page's credentials only to its own site.
        if token == nil, !Self.isLocal(host ?? "") { return .wrongHost }
        if let origin = headers["origin"], !Self.isSame(origin, host) { return .otherSite }
        if let site = headers["sec-fetch-site"], site != "same-origin", site != "none" { return .otherSite }
        if let token, !Self.has(headers["authorization"], token) { return .noToken }
        return .admitted
    }

    /// True when every browser takes the host for this machine. `console`, without a dot, is for `curl --unix-socket`.
    static func isLocal(_ host: String) -> Bool {
        let name = nameOnly(host)
        return ["localhost", "console", "127.0.0.1", "[::1]"].contains(name)
    }

    private static func nameOnly(_ host: String) -> String {
        let host = host.lowercased()
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
            let rest = host[host.index(after: end)...]
            return isPort(rest) ? String(host[...end]) : host
        }
        guard let colon = host.firstIndex(of: ":") else { return host }
        return isPort(host[colon...]) ? String(host[..<colon]) : host
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.isEmpty || text.first == ":" && UInt16(text.dropFirst()) != nil
    }

    private static func isSame(_ origin: String, _ host: String?) -> Bool {
        ["http://", "https://"].contains { origin.lowercased() == $0 + (host ?? "").lowercased() }
    }

    /// Accepts `Bearer TOKEN`, or `Basic` with the token as password and `console` or nobody as user.
    private static func has(_ authorization: String?, _ token: String) -> Bool {
        guard let words = authorization?.split(separator: " ", maxSplits: 1), words.count == 2 else { return false }
        return switch words[0].lowercased() {
        case "bearer": isEqual(words[1], token)
        case "basic": ["console:", ":"].contains { isEqual(words[1], base64(Array(($0 + token).utf8))) }
        default: false
        }
    }

    /// Takes the same time however many bytes are right.
    private static func isEqual(_ one: Substring, _ other: String) -> Bool {
        zip(one.utf8, other.utf8).reduce(0) { $0 | $1.0 ^ $1.1 } == 0 && one.utf8.count == other.utf8.count
    }
}
