/// The kind of code that a loop has called. The layer above may add kinds for its own jobs, as an extension.
public struct HandlerKind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the kind in reports: `timer`.
    public let rawValue: String

    /// Creates a kind.
    /// - Parameter rawValue: the name of the kind.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A closure that was enqueued, submitted or dispatched.
    public static var job: HandlerKind { HandlerKind(rawValue: "job") }
    /// The callback of a timer.
    public static var timer: HandlerKind { HandlerKind(rawValue: "timer") }
    /// The callback of a watched descriptor. For a connection or listener, this is the library's own code.
    public static var watch: HandlerKind { HandlerKind(rawValue: "watch") }
    /// The callback of a signal.
    public static var signal: HandlerKind { HandlerKind(rawValue: "signal") }
    /// A closure that was passed to `beforeWaiting` or `afterWaiting`.
    public static var hook: HandlerKind { HandlerKind(rawValue: "hook") }

    /// `timer`
    public var description: String { rawValue }
}
