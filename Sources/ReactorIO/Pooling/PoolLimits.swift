/// Limits on the number of a pool's resources and requests, and time limits.
public struct PoolLimits: Hashable, Sendable {
    /// The maximum number of resources per key, including those being made; at least 1.
    public var perKey: Int
    /// The maximum number of resources of all keys together; at least 1. When no place is left, the resource that has
    /// been idle longest is closed for a request with another key. If none is idle, requests wait, and the next place
    /// goes to the key whose first request in line has waited longest: a returning resource is closed for it, unless a
    /// request for its own key has waited longer.
    public var total: Int
    /// The maximum number of requests per key that wait because no resource can be made for them. Further ones are
    /// rejected with `PoolError.tooManyWaiting`.
    public var waiting: Int
    /// How long a request may be without a resource: in line, while one is made and while one is checked. Then it is
    /// rejected with `PoolError.timedOut`. A repetition of an idempotent request has this time anew. `nil` for no
    /// limit, here and below.
    public var waitTimeout: Duration?
    /// The limit for making a resource. Then it is cancelled, and has failed with `PromiseError.timedOut`.
    public var makeTimeout: Duration?
    /// The limit for a check. Then it is cancelled, and the resource counts as unusable, so that an unresponsive peer
    /// does not use up the request's `waitTimeout`.
    public var checkTimeout: Duration?
    /// How long a resource may be idle before it is closed.
    public var idleTimeout: Duration?
    /// The maximum age of a resource. Then it is closed, at once if it is idle, and after its request otherwise; so
    /// connections move to a name's current addresses, and to new servers.
    public var maxLifetime: Duration?
    /// The memory that the connections may hold together, in bytes, like `ServeOptions.memoryLimit` for a listener's:
    /// operations on a connection that is reset for it fail with `ENOBUFS`.
    public var memoryLimit: Int?

    /// Each parameter is the property of its name.
    public init(
        perKey: Int = 8, total: Int = .max, waiting: Int = .max, waitTimeout: Duration? = .seconds(30),
        makeTimeout: Duration? = .seconds(10), checkTimeout: Duration? = .seconds(1),
        idleTimeout: Duration? = .seconds(60), maxLifetime: Duration? = nil, memoryLimit: Int? = nil
    ) {
        (self.perKey, self.total, self.waiting, self.waitTimeout) = (perKey, total, waiting, waitTimeout)
        (self.makeTimeout, self.checkTimeout) = (makeTimeout, checkTimeout)
        (self.idleTimeout, self.maxLifetime, self.memoryLimit) = (idleTimeout, maxLifetime, memoryLimit)
    }

    /// Why the numbers are invalid.
    var problem: String? {
        if perKey < 1 { return "perKey: \(perKey) is below 1" }
        if total < 1 { return "total: \(total) is below 1" }
        return waiting < 0 ? "waiting: \(waiting) is below 0" : nil
    }
}
