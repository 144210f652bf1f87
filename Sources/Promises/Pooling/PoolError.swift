/// The reason for which a `ConnectionPool` gave a request no connection.
public enum PoolError: Error, Hashable, Sendable {
    /// No connection to `address` was free, or could be opened, within the pool's `waitTimeout`. `limit` is the number
    /// of connections that the pool opens to one address at most, `waited` the time since the request was made.
    case timedOut(address: String, limit: Int, waited: Duration)
    /// As many requests as `maxWaiting` allows were waiting for a connection to `address` already.
    case tooManyWaiting(address: String, limit: Int)
    /// The pool has been closed, or is being drained.
    case closed(address: String)
}

extension PoolError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .timedOut(let address, let limit, let waited):
            "no connection to \(address) was available within \(waited), with at most \(limit) open"
        case .tooManyWaiting(let address, let limit):
            "\(limit) requests are waiting for a connection to \(address) already"
        case .closed(let address): "no connection to \(address): the pool is closed"
        }
    }
}
