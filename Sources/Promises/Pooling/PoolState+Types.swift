import Reactor

extension PoolState {
    struct Limits {
        /// Connections to one target.
        var connections = 8
        /// Connections to all targets together.
        var total = Int.max
        /// Requests in line for one target for which no connection is being opened.
        var waiting = Int.max
        var waitTime: Duration?
        var idleTime: Duration?
        /// How long after its connect a connection is still given to requests.
        var lifetime: Duration?
    }

    enum PoolAction: Equatable {
        case connect(Member, PoolTarget)
        case cancelConnect(Member)
        /// Give the connection to the request.
        case lend(Member, Request)
        /// The connection has served before: find out whether it can serve this request, and report it by `didCheck`.
        case check(Member, Request)
        case park(Member)
        case close(Member)
        /// Close the connection at once, although a request or a check uses it.
        case abort(Member)
        case reject(Request, Rejection)
    }

    enum Rejection: Equatable {
        case timedOut(PoolTarget, waited: Duration)
        case tooManyWaiting(PoolTarget)
        case closed(PoolTarget)
        /// With the error of this connect.
        case connectFailed(Member)
    }

    enum PoolPhase { case open, draining, closed }

    enum Use {
        case connecting
        case idle(since: LoopInstant)
        case checked(Request)
        case leased
    }

    struct PooledConnection {
        let target: PoolTarget
        var use: Use
        /// When its connect succeeded.
        var opened = LoopInstant.distantFuture
        /// Whether its lifetime is over: it is closed when its request has ended.
        var isOld = false
    }

    struct Waiter {
        let target: PoolTarget
        let since: LoopInstant
        /// The connection that is being checked for the request; `nil` while it stands in line.
        var checks: Member?
    }

    /// What one target has. A class, since a struct would be copied with its lists when it is changed in a dictionary.
    final class Line {
        /// Members in any state.
        var count = 0
        var connecting = LinkedOrder()
        /// The one that was used last is at the end.
        var idle = LinkedOrder()
        /// Requests, the oldest first.
        var waiting = AscendingOrder()
        var leased = 0
        /// Its entry in `blocked`.
        var blockedRequest: Request?
    }
}
