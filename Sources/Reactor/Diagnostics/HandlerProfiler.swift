/// Information about a handler, recorded before it runs, since it may be released afterwards.
struct HandlerInfo {
    var kind: HandlerKind
    var callSite: CallSite?
    var subject: (any AnyObject & Sendable)?
}

/// Measures the running handler and keeps the results. It uses the loop's clock.
struct HandlerProfiler {
    /// The moment at which the current handler began, which is when the previous one ended. `unknown` if that was not
    /// measured.
    var started = unknown
    static var unknown: Int64 { .min }
    var threshold = Int64.max
    private var mostNanoseconds: Int64 = -1
    private(set) var longest: SlowHandler?
    private(set) var slow = 0

    /// Records the end of the handler. Returns the report to send, if any.
    mutating func note(_ info: HandlerInfo, endedAt now: Int64) -> SlowHandler? {
        let time = now - started
        started = now
        guard time >= threshold || time > mostNanoseconds else { return nil }
        let handler = SlowHandler(duration: .nanoseconds(time), kind: info.kind, callSite: info.callSite)
        if time > mostNanoseconds {
            mostNanoseconds = time
            longest = handler
        }
        guard time >= threshold else { return nil }
        slow += 1
        return handler
    }
}
