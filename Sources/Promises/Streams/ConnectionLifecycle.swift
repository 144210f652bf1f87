/// How far a connection has come, from its first byte to the end of its descriptor.
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
/// `release` gives up the descriptor: the peer has ended, or is reset, or a limit was reached, or the loop ends, or `detach`
/// was called. A failure while flushing or lingering is a release too.
enum ConnectionLifecycle: UInt8 {
    case open
    /// The descriptor is beyond use for writing, for good. What the peer sent before may still be read.
    case failed
    /// `close()` was called: what is queued is going out.
    case flushing
    /// All is sent, and the end too: input is read and discarded until the peer ends.
    case lingering
    /// The only side of a pipe's writer has been ended, and that is to close the descriptor.
    case shutDown
    case closed

    /// Whether `close` and `abort` have not been called, and there is something to read or to write.
    @inline(__always)
    var isOpen: Bool {
        switch self {
        case .open, .failed: true
        case .flushing, .lingering, .shutDown, .closed: false
        }
    }

    /// Whether the descriptor is this connection's. Afterwards its number may be another's.
    @inline(__always)
    var hasDescriptor: Bool {
        switch self {
        case .open, .failed, .flushing, .lingering: true
        case .shutDown, .closed: false
        }
    }

    /// Whether `close` or `abort` has been called.
    var isClosed: Bool {
        switch self {
        case .open, .failed, .shutDown: false
        case .flushing, .lingering, .closed: true
        }
    }

    // MARK: Events

    /// There is a first error of the descriptor.
    mutating func fail() {
        if self == .open { self = .failed }
    }

    /// What `close` is to do.
    enum CloseAction {
        /// Deliver what is queued, if anything is, and then the end.
        case deliver
        /// Nothing can be delivered: release the descriptor.
        case release
        /// The connection is being closed.
        case wait
        /// There is no descriptor any more.
        case nothing
    }

    /// `close` was called.
    mutating func close() -> CloseAction {
        switch self {
        case .open:
            self = .flushing
            return .deliver
        case .failed:
            self = .flushing
            return .release
        case .flushing, .lingering: return .wait
        case .shutDown, .closed:
            self = .closed
            return .nothing
        }
    }

    /// Nothing is queued any more.
    /// - Returns: whether the connection was waiting for that: then the end of the stream comes next.
    mutating func deliver() -> Bool {
        guard self == .flushing else { return false }
        self = .lingering
        return true
    }

    /// The descriptor is to be closed, or to be given away.
    /// - Returns: whether it is still there. Then it is the caller's to close.
    mutating func release(as end: ConnectionLifecycle = .closed) -> Bool {
        let hadDescriptor = hasDescriptor
        if hadDescriptor || self == .shutDown { self = end }
        return hadDescriptor
    }
}
