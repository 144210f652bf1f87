/// How long the reads of frames wait; see `Connection.frameTimeouts`. `nil` and values of zero or less mean no limit.
///
/// The time during which a handler runs does not count, since no read waits; for bytes that arrive during it, the time of their
/// frame begins with the next read.
///
/// A read that continues a request, such as the read of a body after its header, reads a frame of its own: `idle` applies until
/// its first byte, and `message` to all reads of the request together. When `message` is reached, the number of bytes in the
/// error is that of the whole message.
///
/// A read that waits costs one reading of the clock. All reads of a connection share one timer, which is moved at most once per
/// limit.
public struct FrameTimeouts: Hashable, Sendable {
    /// The time between two frames: from the moment at which a read begins to wait to the first byte.
    public var idle: Duration?
    /// The time for one frame: from its first byte, or the first that its decoder has skipped before it, to its last. Further
    /// bytes do not prolong it.
    public var frame: Duration?
    /// The time for one message, which may have several frames: from its first byte to its last, as far as reads wait for
    /// it. `Connection.beginMessage` says what a message is.
    public var message: Duration?
    /// How many bytes a second the peer has to send. With a rate, `frame` and `message` grow by the time that the bytes
    /// received so far take at this rate: they become the time that a peer may be behind. A large message that keeps
    /// arriving is then never late.
    public var minimumRate: Int?

    /// Limits for the reads of frames; what is `nil` has no limit.
    /// - Parameters:
    ///   - idle: the limit for the time between two frames; see `idle`.
    ///   - frame: the limit for the time of one frame; see `frame`.
    ///   - message: the limit for the time of one message; see `message`.
    ///   - minimumRate: the bytes a second by which `frame` and `message` grow; see `minimumRate`.
    public init(
        idle: Duration? = nil, frame: Duration? = nil, message: Duration? = nil, minimumRate: Int? = nil
    ) {
        self.idle = idle
        self.frame = frame
        self.message = message
        self.minimumRate = minimumRate
    }

    /// `limit` after `count` bytes; `nil` if there is none.
    func grown(_ limit: Duration?, by count: Int) -> Duration? {
        guard let limit, limit > .zero else { return nil }
        guard let minimumRate, minimumRate > 0 else { return limit }
        return limit + .seconds(Double(count) / Double(minimumRate))
    }
}
