/// A handler and the time for which it has blocked its loop: one that took longer than
/// `EventLoop.slowHandlerThreshold`, or the longest of a loop (`LoopMetrics.longestHandler`).
public struct SlowHandler: Hashable, Sendable, CustomStringConvertible {
    /// The time for which the handler blocked the loop. Turns of the loop that the handler itself has run do not count.
    public let duration: Duration
    /// The kind of the handler.
    public let kind: HandlerKind
    /// The call that started the job, timer, watch or hook; for the handler of a promise, the operator, if the promise
    /// was made while promises were traced. `nil` if unknown, as for a timer that was started before handlers were
    /// measured.
    public let callSite: CallSite?

    /// Makes the report of a handler that has not run, for a test of a `conf.logHandler`.
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
