/// The kind of code that a loop has called.
public enum HandlerKind: String, Sendable {
    /// A closure that was enqueued, submitted or dispatched.
    case job
    /// The callback of a timer.
    case timer
    /// The callback of a watched descriptor. For a connection or listener, this is the library's own code.
    case watch
    /// The callback of a signal.
    case signal
    /// A closure that was passed to `beforeWaiting` or `afterWaiting`.
    case hook
    /// The closure of a promise's operator.
    case promiseHandler = "promise handler"
}
