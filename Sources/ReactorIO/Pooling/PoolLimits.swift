/// Limits on a pool's resources and requests: on their numbers and times.
public struct PoolLimits: Hashable, Sendable {
    /// The maximum number of resources per key, including those being made; at least 1.
    public var perKey: Int
    /// The maximum number of resources for all keys together; at least 1. At the limit, a request for another key
    /// closes the longest idle resource. If none is idle, requests wait. The next place goes to the key whose first
    /// request has waited longest: a returning resource is closed for it, unless a request for its own key has waited
    /// longer.
    public var total: Int
    /// The maximum number of requests per key that wait for a resource. Further ones are rejected with
    /// `PoolError.tooManyWaiting`.
    public var waiting: Int
    /// The maximum time that a request waits for a resource, including its making or check. Then the request is
    /// rejected with `PoolError.timedOut`. Repeating an idempotent request restarts the time. `nil` for no limit, here
    /// and below.
    public var waitTimeout: Duration?
    /// The maximum time to make a resource. Then the making is cancelled, and fails with `PromiseError.timedOut`.
    public var makeTimeout: Duration?
    /// The maximum time of a check. Then the check is cancelled, and the resource is unusable, so that an unresponsive
    /// peer does not exhaust `waitTimeout`.
    public var checkTimeout: Duration?
    /// The maximum time that a resource stays idle before it is closed.
    public var idleTimeout: Duration?
    /// The maximum age of a resource. At that age it is closed, or after its current request. So connections move to a
    /// name's current addresses and to new servers.
    public var maxLifetime: Duration?
    /// The maximum memory of all connections, in bytes, counted like `ServeOptions.memoryLimit`. If a connection is
    /// reset for it, its operations fail with `ENOBUFS`.
    public var memoryLimit: Int?

    /// Sets the property that each parameter names.
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
