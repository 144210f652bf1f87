/// The reason why a `Pool` gave a request no resource.
public enum PoolError: Error, Hashable, Sendable {
    /// No resource for `key` became free or could be made within the pool's `waitTimeout`. `limit` is the pool's limit
    /// per key, and `waited` the time since the request.
    case timedOut(key: PoolKey, limit: Int, waited: Duration)
    /// `PoolLimits.waiting` requests were already waiting for `key`.
    case tooManyWaiting(key: PoolKey, limit: Int)
    /// The pool has been closed, or is being drained.
    case closed(key: PoolKey)
}

extension PoolError: CustomStringConvertible {
    /// A sentence for people.
    public var description: String {
        switch self {
        case .timedOut(let key, let limit, let waited):
            "the pool had nothing free for \(key) within \(waited), with at most \(limit) in use"
        case .tooManyWaiting(let key, let limit): "\(limit) requests are waiting for \(key) already"
        case .closed(let key): "nothing for \(key): the pool is closed"
        }
    }
}
