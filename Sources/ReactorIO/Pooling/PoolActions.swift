enum PoolAction {
    case make(PoolMember)
    case cancelMake(PoolMember)
    case lend(PoolMember, PoolRequest)
    /// Check that the used resource can be reused, then call `didCheck`.
    case check(PoolMember)
    case park(PoolMember)
    case close(PoolMember)
    /// Close the resource at once, even while a request or a check uses it.
    case abort(PoolMember)
    case reject(PoolRequest, any Error)
}

/// The pending actions of a pool, in order. The usual single action needs no queue, which would make a lease a fifth
/// more expensive.
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
