import Promises
import Reactor
import ReactorHTTP

extension Request {
    /// The cookies by name; the first of those that have the same name.
    var cookies: [String: String] {
        let pairs = headers.all("cookie").flatMap { $0.split(separator: ";") }.compactMap { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 ? (String(parts[0].trimmed), String(parts[1].trimmed)) : nil
        }
        return Dictionary(pairs) { first, _ in first }
    }
}

extension Response {
    /// Sets a cookie that only this host gets, only over TLS, without access by scripts, and not with requests that other
    /// sites make.
    /// - Parameters:
    ///   - name: begins with `__Host-`, so that browsers insist on the first two.
    ///   - value: without blanks, quotes, commas, semicolons and backslashes: what a user wrote needs an encoding.
    ///   - time: how long the browser keeps it; zero removes it.
    mutating func setCookie(_ name: String, _ value: String, for time: Duration) throws(PromiseError) {
        guard value.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !#"",;\"#.utf8.contains($0) }) else {
            throw PromiseError.badInput("no cookie can have the value \(value)")
        }
        let seconds = time.components.seconds
        headers.append("Set-Cookie", "\(name)=\(value); Max-Age=\(seconds); Path=/; Secure; HttpOnly; SameSite=Lax")
    }
}

/// What the service knows of its users, in the memory of one loop. A session ends after `time` without a request.
final class Sessions<User> {
    private let time: Duration
    private var users: [String: (user: User, expiry: EventLoop.Timer)] = [:]
    private let name = "__Host-session"

    init(endingAfter time: Duration) { self.time = time }

    func begin(_ user: User, with response: inout Response) throws {
        var random = SystemRandomNumberGenerator()  // nobody can guess what it makes
        let id = (0..<2).map { _ in String(random.next() as UInt64, radix: 36) }.joined(separator: "-")
        users[id] = (user, expiry(of: id))
        try response.setCookie(name, id, for: time)
    }

    /// The user of a request; the session lasts for another `time`.
    func user(of request: Request) -> User? {
        guard let id = request.cookies[name], let (user, expiry) = users[id] else { return nil }
        expiry.cancel()
        users[id] = (user, self.expiry(of: id))
        return user
    }

    func end(_ request: Request, with response: inout Response) throws {
        if let id = request.cookies[name] { users.removeValue(forKey: id)?.expiry.cancel() }
        try response.setCookie(name, "", for: .zero)
    }

    private func expiry(of id: String) -> EventLoop.Timer {
        EventLoop.current.schedule(after: time) { [weak self] in self?.users[id] = nil }
    }
}

func accounts(_ sessions: Sessions<String>) -> Router {
    let router = Router()
    router.on(.post, "/login") { request in
        request.body.text().map { name in  // and a password, in a program
            var response = Response("Welcome, \(name)\n")
            try sessions.begin(name, with: &response)
            return response
        }
    }
    router.on(.get, "/") { request in
        guard let name = sessions.user(of: request) else { throw HTTPError(.unauthorized) }
        return Response("Hello again, \(name)\n")
    }
    router.on(.post, "/logout") { request in
        var response = Response(.noContent)
        try sessions.end(request, with: &response)
        return response
    }
    return router
}

extension Substring {
    fileprivate var trimmed: Substring {
        let rest = drop { $0 == " " || $0 == "\t" }
        return rest.prefix(rest.reversed().drop { $0 == " " || $0 == "\t" }.count)
    }
}
