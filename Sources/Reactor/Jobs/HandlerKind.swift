/// What kind of code a loop has called.
public enum HandlerKind: String, Sendable, CaseIterable, CustomStringConvertible {
    /// What was enqueued, submitted or dispatched.
    case job
    /// The closure of a promise's operator.
    case promiseHandler
    /// The callback of a timer.
    case timer
    /// The callback of a watched descriptor; of a connection or listener, the library's own code.
    case watch
    /// The callback of a signal.
    case signal
    /// What was given to `beforeWaiting` or `afterWaiting`.
    case hook

    /// `promise handler`
    public var description: String { self == .promiseHandler ? "promise handler" : rawValue }
}
