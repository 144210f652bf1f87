/// Time limits for reads of frames; see `Connection.frameTimeouts`. `nil` and values of zero or less mean no limit.
///
/// Time in a handler does not count, since no read is pending. For bytes that arrive in that time, the clock starts at
/// the next read. If the loop was delayed past a limit, the peer gets the lost time again, at most the longest limit,
/// once for each frame or message.
///
/// A read that continues a request, such as a body's after its header, reads a separate frame: `idle` applies until its
/// first byte, and `message` to all reads of the request together. The error at the limit of `message` has the number
/// of bytes of the whole message.
///
/// A pending read costs one clock reading. All reads of a connection share one timer, moved at most once per limit.
public struct FrameTimeouts: Hashable, Sendable {
    /// The time from the beginning of a read's wait to the first byte of a frame.
    public var idle: Duration?
    /// The time from a frame's first byte, or the first that its decoder skipped before it, to its last.
    public var frame: Duration?
    /// The time from a message's first byte to its last, while reads wait for it. See `Connection.beginMessage`.
    public var message: Duration?
    /// The bytes per second that the peer must send. `frame` and `message` grow by the time that the received bytes
    /// take at this rate, so a large message that keeps arriving is never late.
    public var minimumRate: Int?

    /// Makes limits for reads of frames; `nil` for no limit.
    public init(
        idle: Duration? = nil, frame: Duration? = nil, message: Duration? = nil, minimumRate: Int? = nil
    ) {
        self.idle = idle
        self.frame = frame
        self.message = message
        self.minimumRate = minimumRate
    }

    var longest: Duration { [idle, frame, message].lazy.compactMap(\.self).max() ?? .zero }

    /// Returns `limit` after `count` bytes; `nil` without a limit.
    func grown(_ limit: Duration?, by count: Int) -> Duration? {
        guard let limit, limit > .zero else { return nil }
        guard let minimumRate, minimumRate > 0 else { return limit }
        return limit + .seconds(Double(count) / Double(minimumRate))
    }
}
