/// How many resources a pool may have, and how long things may take.
public struct PoolLimits: Hashable, Sendable {
    /// How many resources one key may have, those that are being made included; at least 1.
    public var perKey: Int
    /// How many resources all keys together may have; at least 1. When no place is left, the resource that has been idle
    /// longest is closed for a request with another key. If none is idle, requests wait, and the next place goes to the
    /// key whose first request in line has waited longest: a resource that returns is closed for it, unless a request for
    /// its own key has waited longer.
    public var total: Int
    /// How many requests for one key may wait while no resource can be made for them. Further ones are rejected with
    /// `PoolError.tooManyWaiting`.
    public var waiting: Int
    /// How long a request may be without a resource: in line, while one is made and while one is checked. Then it is
    /// rejected with `PoolError.timedOut`. `nil` for no limit, as in those below.
    public var waitTimeout: Duration?
    /// How long the making of a resource may take. Then it is cancelled, and has failed with `PromiseError.timedOut`.
    public var makeTimeout: Duration?
    /// How long a check may take. Then it is cancelled, and the resource counts as unusable, so that a peer that does not
    /// answer does not use up the request's `waitTimeout`.
    public var checkTimeout: Duration?
    /// How long a resource may be idle before it is closed.
    public var idleTimeout: Duration?
    /// How long after it was made a resource may be used. Then it is closed, at once if it is idle, and after its request
    /// otherwise; so connections move to the addresses that a name has now, and to servers that have been added.
    public var maxLifetime: Duration?
    /// How many bytes the connections may hold together, as `ServeOptions.memoryLimit` says for those of a listener: what
    /// waits for one that is reset fails with `ENOBUFS`.
    public var memoryLimit: Int?

    /// - Parameters:
    ///   - perKey: how many resources one key may have.
    ///   - total: how many all keys together may have.
    ///   - waiting: how many requests for one key may wait.
    ///   - waitTimeout: how long a request may wait.
    ///   - makeTimeout: how long a resource may be made.
    ///   - checkTimeout: how long a check may take.
    ///   - idleTimeout: how long a resource may be idle.
    ///   - maxLifetime: how long a resource may be used.
    ///   - memoryLimit: how many bytes the connections may hold together.
    public init(
        perKey: Int = 8, total: Int = .max, waiting: Int = .max, waitTimeout: Duration? = .seconds(30),
        makeTimeout: Duration? = .seconds(10), checkTimeout: Duration? = .seconds(1),
        idleTimeout: Duration? = .seconds(60), maxLifetime: Duration? = nil, memoryLimit: Int? = nil
    ) {
        (self.perKey, self.total, self.waiting, self.waitTimeout) = (perKey, total, waiting, waitTimeout)
        (self.makeTimeout, self.checkTimeout) = (makeTimeout, checkTimeout)
        (self.idleTimeout, self.maxLifetime, self.memoryLimit) = (idleTimeout, maxLifetime, memoryLimit)
    }

    /// What is wrong with the numbers.
    var problem: String? {
        if perKey < 1 { return "perKey: \(perKey) is below 1" }
        if total < 1 { return "total: \(total) is below 1" }
        return waiting < 0 ? "waiting: \(waiting) is below 0" : nil
    }
}
