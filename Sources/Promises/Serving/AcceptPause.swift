import Glibc
import Reactor

/// Decides what follows a client that could not be accepted, and holds the timer of the pause that may be due.
struct AcceptPause {
    /// What follows a failed call of accept4(2).
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
    /// How many clients in a row may fail before they were accepted.
    static var refusalLimit: Int { 64 }

    var timer: EventLoop.Timer?
    /// Whether descriptors or memory were short at the last call.
    var hasShortage = false

    /// - Parameter refusals: how many calls for this socket in a row have failed with the error of a single connection.
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
        // occur here. A connection that is refused before it is taken out of the backlog stays there: the next call
        // would find it again.
        default:
            refusals += 1
            return refusals < Self.refusalLimit ? .acceptNext : .pause(isNew: refusals == Self.refusalLimit)
        }
    }
}
