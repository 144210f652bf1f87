import Promises
import ReactorIO

/// The program's notes on a request. Most requests have none.
struct RequestNotes {
    /// The path's parameters, from a `Router`.
    var parameters: Parameters?
    /// The route's path, such as `/notes/{id}`.
    var route: String?
    var id: String?
    var values: [ObjectIdentifier: Any] = [:]
}

extension Request {
    /// An identifier for log lines, set by a filter, such as the client's `X-Request-Id`. The access log and reports of
    /// handlers' errors show it.
    public var id: String? {
        get { storage.notes?.id }
        nonmutating set { storage.notes = storage.notes.with { $0.id = newValue } }
    }

    /// The value of this type that a filter has set for handlers, such as the authenticated user.
    ///
    /// ```swift
    /// request[User.self] = user
    /// ```
    public subscript<Value>(type: Value.Type) -> Value? {
        get { storage.notes?.values[ObjectIdentifier(type)] as? Value }
        nonmutating set { storage.notes = storage.notes.with { $0.values[ObjectIdentifier(type)] = newValue } }
    }
}

extension RequestNotes? {
    fileprivate func with(_ change: (inout RequestNotes) -> Void) -> RequestNotes {
        var notes = self ?? RequestNotes()
        change(&notes)
        return notes
    }
}

extension RequestStorage {
    func note(_ parameters: Parameters, route: String?) {
        notes = notes.with { ($0.parameters, $0.route) = (parameters, route) }
    }

    /// The request's name in reports: method, route or path, and id, but not the query, which may contain secrets.
    var subject: String {
        let place = notes?.route ?? String(text(path).prefix(200))
        return "\(method) \(place.isEmpty ? "/" : place)" + (notes?.id.map { ", \($0)" } ?? "")
    }
}
