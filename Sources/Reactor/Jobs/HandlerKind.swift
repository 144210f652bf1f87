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
    /// A closure of `beforeWaiting` or `afterWaiting`.
    case hook
    /// A closure of a promise's operator.
    case promiseHandler = "promise handler"
}
