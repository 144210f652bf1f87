/// Time limits for reading frames; see `Connection.frameTimeouts`. `nil` and values of zero or less mean no limit.
///
/// Time in a handler does not count, since no read is pending. If bytes arrive during that time, their clock starts at
/// the next read. If the loop was delayed past a limit, the peer gets the lost time again, up to the longest limit,
/// once per frame or message.
///
/// A read that continues a request, such as for a body after its header, reads a separate frame: `idle` applies until
/// the body's first byte. `message` applies to all reads of the request together. The error at the limit of `message`
/// has the number of bytes in the whole message.
///
/// A pending read reads the clock once. All reads of a connection share one timer, moved at most once per limit.
public struct FrameTimeouts: Hashable, Sendable {
    /// The limit from the beginning of a read's wait to the first byte of a frame.
    public var idle: Duration?
    /// The limit from a frame's first byte, or from the first byte that its decoder skipped before it, to its last.
    public var frame: Duration?
    /// The limit from a message's first byte to its last, while reads wait for it. See `Connection.beginMessage`.
    public var message: Duration?
    /// The minimum rate, in bytes per second. `frame` and `message` grow by the time that the received bytes take at
    /// this rate, so a large message that keeps arriving fast enough is never late.
    public var minimumRate: Int?

    /// Makes time limits; `nil` means no limit.
    public init(
        idle: Duration? = nil, frame: Duration? = nil, message: Duration? = nil, minimumRate: Int? = nil
    ) {
        self.idle = idle
        self.frame = frame
        self.message = message
        self.minimumRate = minimumRate
    }

    var longest: Duration { [idle, frame, message].lazy.compactMap(\.self).max() ?? .zero }

    /// Returns `limit` plus the time for `count` bytes; `nil` without a limit.
    func grown(_ limit: Duration?, by count: Int) -> Duration? {
        guard let limit, limit > .zero else { return nil }
        guard let minimumRate, minimumRate > 0 else { return limit }
        return limit + .seconds(Double(count) / Double(minimumRate))
    }
}
