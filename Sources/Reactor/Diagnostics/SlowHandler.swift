/// A report about a handler that has blocked its loop for longer than `EventLoop.slowHandlerThreshold`.
public struct SlowHandler: Hashable, Sendable, CustomStringConvertible {
    /// The time for which the handler blocked the loop. Turns of the loop that the handler itself has run do not count.
    public let duration: Duration
    /// The kind of the handler.
    public let kind: HandlerKind
    /// The call site that started the job, timer, watch or hook. For any other kind, the call site that the layer which
    /// has named the kind reports. `nil` if it is not known, as for anything that was started before the threshold was
    /// set.
    public let callSite: CallSite?
    /// The number of slow handlers before this one that were not reported, because there were too many within a second.
    public let suppressedCount: Int

    /// Makes a report, to test a handler of such reports.
    /// - Parameters:
    ///   - duration: the time for which the handler blocked the loop.
    ///   - kind: the kind of the handler.
    ///   - callSite: the call site that started it.
    ///   - suppressedCount: the number of slow handlers before it that were not reported.
    public init(duration: Duration, kind: HandlerKind, callSite: CallSite? = nil, suppressedCount: Int = 0) {
        self.duration = duration
        self.kind = kind
        self.callSite = callSite
        self.suppressedCount = suppressedCount
    }

    /// `a timer at App/Server.swift:12 held the loop for 0.25 seconds`
    public var description: String {
        "a \(kind)\(callSite.map { " at \($0)" } ?? "") held the loop for \(duration)"
            + (suppressedCount > 0 ? " (\(suppressedCount) more before it were not reported)" : "")
    }
}
