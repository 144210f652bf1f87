/// A handler that has held its loop for longer than `EventLoop.slowHandlerThreshold`.
public struct SlowHandler: Hashable, Sendable, CustomStringConvertible {
    /// How long nothing else could happen on the loop. Turns that the handler itself has made of the loop do not count.
    public let duration: Duration
    /// What was called.
    public let kind: HandlerKind
    /// Where the job, timer, watch or hook was started; of another kind, what the layer that
    /// has named the kind knows of it. `nil`: not known, for example of what was started before the threshold was set.
    public let origin: CallSite?
    /// How many slow handlers before this one were not reported, since there were too many within a second.
    public let suppressedCount: Int

    /// `a timer at App/Server.swift:12 held the loop for 0.25 seconds`
    public var description: String {
        "a \(kind)\(origin.map { " at \($0)" } ?? "") held the loop for \(duration)"
            + (suppressedCount > 0 ? " (\(suppressedCount) more before it were not reported)" : "")
    }
}
