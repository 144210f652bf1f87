/// How long the reads of frames wait; see `Connection.frameTimeouts`. `nil` and values of zero or less mean no limit.
public struct FrameTimeouts: Hashable, Sendable {
    /// The time between two frames: from the moment at which a read begins to wait to the first byte.
    public var idle: Duration?
    /// The time for one frame: from its first byte to its last. Further bytes do not prolong it.
    public var frame: Duration?

    /// Makes limits for the time between frames and for the time of one.
    /// - Parameters:
    ///   - idle: the limit for the time between two frames; see `idle`.
    ///   - frame: the limit for the time of one frame; see `frame`.
    public init(idle: Duration? = nil, frame: Duration? = nil) {
        self.idle = idle
        self.frame = frame
    }
}
