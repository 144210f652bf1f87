/// Limits on the number of a pool's resources and requests, and on their time.
public struct PoolLimits: Hashable, Sendable {
    /// The maximum number of resources per key, including those being made; at least 1.
    public var perKey: Int
    /// The maximum number of resources of all keys; at least 1. At the limit, a request for another key closes the
    /// longest idle resource. If none is idle, requests wait, and the next place goes to the key whose first request
    /// has waited longest: a returning resource is closed for it, unless its own key's request has waited longer.
    public var total: Int
    /// The maximum number of requests per key that wait for a resource. Further ones are rejected with
    /// `PoolError.tooManyWaiting`.
    public var waiting: Int
    /// The maximum time of a request without a resource, also while one is made or checked. Then it is rejected with
    /// `PoolError.timedOut`. Repeating an idempotent request restarts the time. `nil` for no limit, here and below.
    public var waitTimeout: Duration?
    /// The maximum time to make a resource. Its making is then cancelled, and fails with `PromiseError.timedOut`.
    public var makeTimeout: Duration?
    /// The maximum time of a check. It is then cancelled, and the resource is unusable, so that an unresponsive peer
    /// does not use up `waitTimeout`.
    public var checkTimeout: Duration?
    /// The maximum time that a resource stays idle before it is closed.
    public var idleTimeout: Duration?
    /// The maximum age of a resource. It is closed then, or after its request, so that connections move to a name's
    /// current addresses, and to new servers.
    public var maxLifetime: Duration?
    /// The maximum memory of all connections, in bytes, like `ServeOptions.memoryLimit`. Operations on a connection
    /// that is reset for it fail with `ENOBUFS`.
    public var memoryLimit: Int?

    /// Sets the property of each parameter's name.
    public init(
        perKey: Int = 8, total: Int = .max, waiting: Int = .max, waitTimeout: Duration? = .seconds(30),
        makeTimeout: Duration? = .seconds(10), checkTimeout: Duration? = .seconds(1),
        idleTimeout: Duration? = .seconds(60), maxLifetime: Duration? = nil, memoryLimit: Int? = nil
    ) {
        (self.perKey, self.total, self.waiting, self.waitTimeout) = (perKey, total, waiting, waitTimeout)
        (self.makeTimeout, self.checkTimeout) = (makeTimeout, checkTimeout)
        (self.idleTimeout, self.maxLifetime, self.memoryLimit) = (idleTimeout, maxLifetime, memoryLimit)
    }

    var problem: String? {
        if perKey < 1 { return "perKey: \(perKey) is below 1" }
        if total < 1 { return "total: \(total) is below 1" }
        return waiting < 0 ? "waiting: \(waiting) is below 0" : nil
    }
}
