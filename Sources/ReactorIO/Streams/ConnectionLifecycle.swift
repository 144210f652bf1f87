/// The states of a connection, from its first byte to the end of its descriptor.
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
/// `release` gives up the descriptor: the peer has ended, or is reset, or a limit was reached, or the loop ends, or
/// `detach` was called. A failure while flushing or lingering is a release too.
enum ConnectionLifecycle: UInt8 {
    case open
    /// The descriptor can never be written to again. Earlier data from the peer may still be read.
    case failed
    /// `close()` was called: queued writes are being sent.
    case flushing
    /// Everything is sent, including the end: input is read and discarded until the peer ends.
    case lingering
    /// The write side of a pipe's writer has been ended, which closes the descriptor.
    case shutDown
    case closed

    /// Whether `close` and `abort` have not been called, and there is something to read or to write.
    @inline(__always)
    var isOpenOrFailed: Bool { self == .open || self == .failed }

    /// Whether this connection owns the descriptor. Afterwards the number may belong to another one.
    @inline(__always)
    var hasDescriptor: Bool { self != .shutDown && self != .closed }

    /// Whether `close` or `abort` has been called, or the descriptor has been released other than by `shutdownWrite`.
    var isClosed: Bool { !isOpenOrFailed && self != .shutDown }

    // MARK: Events

    /// The descriptor has reported its first error.
    mutating func fail() {
        if self == .open { self = .failed }
    }

    /// `close` was called.
    /// - Returns: the state before.
    mutating func close() -> ConnectionLifecycle {
        let before = self
        if isOpenOrFailed { self = .flushing } else if self == .shutDown { self = .closed }
        return before
    }

    /// Nothing is queued any more.
    /// - Returns: whether a close was waiting for that: then the end of the stream is next.
    mutating func deliver() -> Bool {
        guard self == .flushing else { return false }
        self = .lingering
        return true
    }

    /// The descriptor must be closed, or given away.
    /// - Returns: whether the connection still had it. Then the caller must close it.
    mutating func release(as end: ConnectionLifecycle = .closed) -> Bool {
        let hadDescriptor = hasDescriptor
        if hadDescriptor || self == .shutDown { self = end }
        return hadDescriptor
    }
}
