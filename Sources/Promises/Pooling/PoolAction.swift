/// A side effect for a pool to execute.
enum PoolAction {
    case make(PoolMember)
    case cancelMake(PoolMember)
    case lend(PoolMember, PoolRequest)
    /// The resource has been used before: find out whether it can be reused, and report it by `didCheck`.
    case check(PoolMember)
    case park(PoolMember)
    case close(PoolMember)
    /// Close the resource at once, although a request or a check uses it.
    case abort(PoolMember)
    case reject(PoolRequest, any Error)
}
