/// The states of a connection.
///
/// ```
///              close                 deliver
///   [open] ------------> [flushing] ---------> [lingering]
///    |  |                 ^      |                  |
///    |  | fail            |      | release          | release
///    |  v                 |      v                  |
///    | [failed] -- close -+   [closed] <------------+
///    |    |                    ^    ^
///    +----+---- release -------+    | close, abort
///    |    |                         |
///    +----+-- release as shutDown -> [shutDown]
/// ```
///
/// `release` gives up the descriptor: at the peer's end, a reset, a limit or the end of the loop, by `detach`, or after
/// a failure while flushing or lingering.
enum ConnectionLifecycle: UInt8 {
    case open
    /// The descriptor can never be written to again. Earlier data from the peer may still be read.
    case failed
    /// `close()` was called, and queued writes are being sent.
    case flushing
    /// Everything is sent, including the end. Input is read and discarded until the peer ends.
    case lingering
    /// The write side of a pipe's writer has been ended, which closes the descriptor.
    case shutDown
    case closed

    @inline(__always)
    var isOpenOrFailed: Bool { self == .open || self == .failed }

    /// True when this connection owns the descriptor. Afterwards its number may belong to another.
    @inline(__always)
    var hasDescriptor: Bool { self != .shutDown && self != .closed }

    /// False after only a `shutdownWrite`.
    var isClosed: Bool { !isOpenOrFailed && self != .shutDown }

    // MARK: Events

    mutating func fail() {
        if self == .open { self = .failed }
    }

    /// - Returns: the state before.
    mutating func close() -> ConnectionLifecycle {
        let before = self
        if isOpenOrFailed { self = .flushing } else if self == .shutDown { self = .closed }
        return before
    }

    /// Notes that nothing is queued.
    /// - Returns: true if a close was waiting for that, so that the end of the stream is next.
    mutating func deliver() -> Bool {
        guard self == .flushing else { return false }
        self = .lingering
        return true
    }

    /// - Returns: true if the caller must close the descriptor.
    mutating func release(as end: ConnectionLifecycle = .closed) -> Bool {
        let hadDescriptor = hasDescriptor
        if hadDescriptor || self == .shutDown { self = end }
        return hadDescriptor
    }
}
