/// What is known of a handler, taken down before it runs: afterwards it may be gone.
struct HandlerInfo {
    var kind: HandlerKind
    var origin: CallSite?
    var subject: (any AnyObject & Sendable)?
}

/// The time of the handler that runs, and what has become of the times before. It is the clock of the loop that counts.
struct HandlerProfiler {
    /// When the present handler began: when the one before it ended. `unknown`: the time was not taken then.
    var started = unknown
    static var unknown: Int64 { .min }
    var threshold = Int64.max
    private(set) var longest: Int64 = 0
    private(set) var longestIdentity: HandlerInfo?
    private(set) var slow = 0
    private var second = Int64.min
    private var reports = 0
    private var suppressedCount = 0

    /// One that is as slow as ten others would be lost among a hundred reports, and each takes time of its own.
    private static var reportsPerSecond: Int { 10 }

    /// The handler has ended. Answers what is to be reported.
    mutating func note(_ identity: HandlerInfo, endedAt now: Int64) -> SlowHandler? {
        let time = now - started
        started = now
        if time > longest {
            longest = time
            longestIdentity = identity
        }
        guard time >= threshold else { return nil }
        slow += 1
        if second == .min || now - second >= 1_000_000_000 {
            second = now
            reports = 0
        }
        guard reports < Self.reportsPerSecond else {
            suppressedCount += 1
            return nil
        }
        reports += 1
        defer { suppressedCount = 0 }
        return SlowHandler(
            duration: .nanoseconds(time), kind: identity.kind, origin: identity.origin, suppressedCount: suppressedCount
        )
    }
}
