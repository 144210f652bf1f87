/// What kind of code a loop has called. A layer above may add kinds for its own jobs, as an extension.
public struct HandlerKind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The words that reports use: `timer`.
    public let rawValue: String

    /// A kind of those words.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// What was enqueued, submitted or dispatched.
    public static var job: HandlerKind { HandlerKind(rawValue: "job") }
    /// The callback of a timer.
    public static var timer: HandlerKind { HandlerKind(rawValue: "timer") }
    /// The callback of a watched descriptor; of a connection or listener, the library's own code.
    public static var watch: HandlerKind { HandlerKind(rawValue: "watch") }
    /// The callback of a signal.
    public static var signal: HandlerKind { HandlerKind(rawValue: "signal") }
    /// What was given to `beforeWaiting` or `afterWaiting`.
    public static var hook: HandlerKind { HandlerKind(rawValue: "hook") }

    /// `timer`
    public var description: String { rawValue }
}
