/// Information about a handler, recorded before it runs, since it may be released afterwards.
struct HandlerInfo {
    var kind: HandlerKind
    var callSite: CallSite?
    var subject: (any AnyObject & Sendable)?
}

/// Measures the running handler and keeps the results. It uses the loop's clock.
struct HandlerProfiler {
    /// The moment at which the current handler began, which is when the previous one ended. `unknown` if the time was
    /// not measured then.
    var started = unknown
    static var unknown: Int64 { .min }
    var threshold = Int64.max
    private(set) var longest: Int64 = 0
    private(set) var longestIdentity: HandlerInfo?
    private(set) var slow = 0
    private var second = Int64.min
    private var reports = 0
    private var suppressedCount = 0

    /// The limit of reports: a handler that is as slow as ten others would be lost among a hundred reports, and each
    /// report takes time itself.
    private static var reportsPerSecond: Int { 10 }

    /// Records the end of the handler. Returns the report to send, if any.
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
            duration: .nanoseconds(time), kind: identity.kind, callSite: identity.callSite,
            suppressedCount: suppressedCount)
    }
}
