/// The kind of code that a loop called.
public enum HandlerKind: String, Sendable {
    /// An enqueued, submitted or dispatched closure.
    case job
    /// A timer's callback.
    case timer
    /// A watched descriptor's callback; for a connection or listener, the library's own code.
    case watch
    /// A signal's callback.
    case signal
    /// A closure passed to `beforeWaiting` or `afterWaiting`.
    case hook
    /// A closure passed to a promise's operator.
    case promiseHandler = "promise handler"
}
