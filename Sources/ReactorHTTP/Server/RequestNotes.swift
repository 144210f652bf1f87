import Promises
import ReactorIO

/// What the program has found out about a request: most have none of it.
struct RequestNotes {
    /// The parameters of the path, if a `Router` has looked at it.
    var parameters: Parameters?
    /// The path of the route, such as `/notes/{id}`.
    var route: String?
    var id: String?
    /// The values that filters have left, by type.
    var values: [ObjectIdentifier: Any] = [:]
}

extension Request {
    /// An identifier for log lines, which a filter sets, such as the client's `X-Request-Id`. The access log's line and
    /// the report of a handler's error show it.
    public var id: String? {
        get { storage.notes?.id }
        nonmutating set { storage.notes = storage.notes.with { $0.id = newValue } }
    }

    /// The value of this type that a filter has left for its handlers, such as the user who has authenticated.
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

    /// The request in a report: the method, the route or the path, and the id. Never the query, which may have secrets.
    var subject: String {
        let place = notes?.route ?? String(text(path).prefix(200))
        return "\(method) \(place.isEmpty ? "/" : place)" + (notes?.id.map { ", \($0)" } ?? "")
    }
}
