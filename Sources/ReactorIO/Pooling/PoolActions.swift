enum PoolAction {
    case make(PoolMember)
    case cancelMake(PoolMember)
    case lend(PoolMember, PoolRequest)
    /// Check whether the used resource can be reused, and report by `didCheck`.
    case check(PoolMember)
    case park(PoolMember)
    case close(PoolMember)
    /// Close the resource at once, although a request or a check uses it.
    case abort(PoolMember)
    case reject(PoolRequest, any Error)
}

/// The pending actions of a pool, in order. A single action, the usual case, needs no queue, which would make a lease
/// dearer by a fifth.
struct PoolActions {
    private var first: PoolAction?
    private var rest = IndexedQueue<PoolAction>()

    mutating func append(_ action: PoolAction) { if first == nil { first = action } else { rest.append(action) } }

    mutating func popFirst() -> PoolAction? {
        guard let action = first.take() else { return nil }
        if !rest.isEmpty { first = rest.removeFirst() }
        return action
    }
}
