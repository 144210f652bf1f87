/// A handler that blocked its loop longer than `EventLoop.slowHandlerThreshold`, or longer than any other
/// (`LoopMetrics.longestHandler`).
public struct SlowHandler: Hashable, Sendable, CustomStringConvertible {
    /// The time that the handler blocked the loop, without the turns that the handler ran.
    public let duration: Duration
    /// The handler's kind.
    public let kind: HandlerKind
    /// The call that started the job, timer, watch or hook. For a promise's handler, the operator, if the promise was
    /// made while tracing. `nil` if unknown, for example for a timer started before handlers were measured.
    public let callSite: CallSite?

    /// Makes a report for testing a `conf.logHandler`.
    public init(duration: Duration, kind: HandlerKind, callSite: CallSite? = nil) {
        self.duration = duration
        self.kind = kind
        self.callSite = callSite
    }

    /// `a timer at App/Server.swift:12 held the loop for 0.25 seconds`
    public var description: String {
        let hint = "; the line of what starts after slowHandlerThreshold was set is known"
        return "a \(kind.rawValue)\(callSite.map { " at \($0)" } ?? "") held the loop for \(duration)"
            + (kind == .timer && callSite == nil ? hint : "")
    }
}
