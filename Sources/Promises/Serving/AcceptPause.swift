import Glibc
import Reactor

/// Decides how to go on after a failed accept, and holds the timer of a pause.
struct AcceptPause {
    /// The reaction to a failed accept4(2).
    enum Reaction: Equatable {
        /// Another client may be waiting.
        case acceptNext
        /// No client is waiting.
        case wait
        /// Accepting pauses. The first pause of an episode is reported.
        case pause(isNew: Bool)
        /// The socket does not work any more.
        case end
    }

    static var length: Duration { .milliseconds(100) }
    /// The number of clients in a row that may fail before they are accepted.
    static var refusalLimit: Int { 64 }

    var timer: EventLoop.Timer?
    /// Whether the last call found a shortage of descriptors or memory.
    var hasShortage = false

    /// - Parameter refusals: the number of calls for this socket in a row that failed with the error of a single
    ///   connection.
    mutating func reaction(to code: CInt, _ refusals: inout Int) -> Reaction {
        switch code {
        case EAGAIN:
            refusals = 0
            return .wait
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            defer { hasShortage = true }
            return .pause(isNew: !hasShortage)
        case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP: return .end
        // Errors of one connection that failed before it was accepted; accept(2) lists the network errors that may
        // occur here. A connection refused before it leaves the backlog stays there: the next call would find it again.
        default:
            refusals += 1
            return refusals < Self.refusalLimit ? .acceptNext : .pause(isNew: refusals == Self.refusalLimit)
        }
    }
}
