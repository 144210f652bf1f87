import Reactor

/// The states of a pool's connections and requests, and the rules by which they meet. It performs nothing itself: each
/// event returns the actions that follow from it, which `ConnectionPool` executes in their order.
///
/// ```
///  a connection:
///              didConnect, none waits        a request takes it
///  [connecting] ---------------> [idle] -----------------------> [checked]
///    |    |                       ^  |                             |   |
///    |    | didConnect            |  | expired, lost               |   | failed
///    |    +-----------> [leased] -+  v                   passed    |   v
///    |  failed, cancelled ^  |     closed   [leased] <-------------+  closed
///    v                    |  | returned, one waits: [checked]
///  closed                 |  v
///                         |  returned unusable: closed
/// ```
///
/// Invariants, of each target:
/// - connections in all states together are at most `limits.connections`, and those of all targets at most `limits.total`;
/// - a request waits in line only while no connection is idle;
/// - while a request waits in line and there is room, a connection is being opened for it: whatever frees a place goes
///   on with the next request in line (`advance`), so that a failure strands none;
/// - while the total limit keeps a target from opening a connection, no connection of any target is idle.
struct PoolState {
    typealias Member = Int
    typealias Request = Int

    let limits: Limits
    var phase = PoolPhase.open
    var lines: [PoolTarget: Line] = [:]
    var members: [Member: PooledConnection] = [:]
    var requests: [Request: Waiter] = [:]
    /// The idle connections of all targets, the one that has been idle longest first. All have the same time limit, so
    /// the first is due first; so is the first of `waiting`.
    var idle = LinkedOrder()
    /// The requests of all targets that have no connection yet.
    var waiting = LinkedOrder()
    /// The first request of each target for which only the total limit keeps a connection from being opened.
    var blocked = AscendingOrder()
    /// The open connections with a lifetime that is not over, the oldest first.
    var aging = LinkedOrder()
    private var nextMember = 0
    private var nextRequest = 0
    private(set) var connectingCount = 0
    private(set) var leasedCount = 0

    init(_ limits: Limits) { self.limits = limits }

    var memberCount: Int { members.count }
    var idleCount: Int { idle.count }
    var waitingCount: Int { requests.count }
    /// Whether everything is over after a close.
    var isFinished: Bool { phase != .open && requests.isEmpty && members.isEmpty }

    private mutating func line(of target: PoolTarget) -> Line {
        if let line = lines[target] { return line }
        let line = Line()
        lines[target] = line
        return line
    }

    /// A pool may meet any number of targets in its life.
    private mutating func forgetIfEmpty(_ target: PoolTarget) {
        if let line = lines[target], line.count == 0, line.waiting.isEmpty { lines[target] = nil }
    }

    // MARK: Requests

    /// A request for a connection. It is answered by one `lend` or `reject`, unless it is cancelled before.
    mutating func request(_ target: PoolTarget, at now: LoopInstant) -> (Request, [PoolAction]) {
        let request = nextRequest
        nextRequest += 1
        if phase != .open { return (request, [.reject(request, .closed(target))]) }
        let line = line(of: target)
        if !hasRoom(line), line.waiting.count - line.connecting.count >= limits.waiting {
            forgetIfEmpty(target)
            return (request, [.reject(request, .tooManyWaiting(target))])
        }
        line.waiting.insert(request)
        waiting.append(request)
        requests[request] = Waiter(target: target, since: now)
        return (request, advance(target))
    }

    /// The request is not interested any more.
    mutating func cancel(_ request: Request) -> [PoolAction] {
        guard let target = requests[request]?.target else { return [] }
        return withdraw(request) + cancelSurplus(target) + advance(target)
    }

    /// Takes a request that has no connection out, and closes the connection that is being checked for it: what the
    /// check has sent may still be answered.
    mutating func withdraw(_ request: Request) -> [PoolAction] {
        guard let removed = requests.removeValue(forKey: request) else { return [] }
        waiting.remove(request)
        if let line = lines[removed.target] {
            line.waiting.remove(request)
            updateBlocked(line)
        }
        forgetIfEmpty(removed.target)
        guard let member = removed.checks else { return [] }
        drop(member)
        return [.abort(member)]
    }

    /// Ends connects that no request waits for any more.
    mutating func cancelSurplus(_ target: PoolTarget) -> [PoolAction] {
        var actions: [PoolAction] = []
        while let line = lines[target], line.connecting.count > line.waiting.count, let member = line.connecting.last {
            drop(member)
            actions.append(.cancelConnect(member))
        }
        return actions
    }

    /// Goes on with the requests in line: gives them idle connections, and opens connections while there is room.
    mutating func advance(_ target: PoolTarget) -> [PoolAction] {
        var actions: [PoolAction] = []
        if let line = lines[target] {
            while let request = line.waiting.first, let member = line.idle.takeLast() {
                line.waiting.remove(request)
                idle.remove(member)
                members[member]?.use = .checked(request)
                requests[request]?.checks = member
                actions.append(.check(member, request))
            }
            updateBlocked(line)
            if limits.total == .max {
                while needsConnection(line) { actions.append(open(target, line)) }
            }
        }
        return actions + openBlocked()
    }

    /// Whether a request in line has no connect, and the limit of its target allows one.
    func needsConnection(_ line: Line) -> Bool {
        line.connecting.count < line.waiting.count && line.count < limits.connections
    }

    mutating func open(_ target: PoolTarget, _ line: Line) -> PoolAction {
        let member = nextMember
        nextMember += 1
        line.count += 1
        line.connecting.append(member)
        connectingCount += 1
        members[member] = PooledConnection(target: target, use: .connecting)
        return .connect(member, target)
    }

    // MARK: Connections

    /// A connect has succeeded.
    mutating func didConnect(_ member: Member, at now: LoopInstant) -> [PoolAction] {
        guard let target = members[member]?.target else { return [] }
        members[member]?.opened = now
        if limits.lifetime != nil { aging.append(member) }
        guard let request = lines[target]?.waiting.first else { return park(member, target, at: now) }
        return lend(member, to: request)
    }

    /// A connect has failed. The request that has waited longest is given its error; the next one has a connect of its
    /// own.
    mutating func connectDidFail(_ member: Member) -> [PoolAction] {
        guard let target = members[member]?.target else { return [] }
        drop(member)
        var actions: [PoolAction] = []
        if let request = lines[target]?.waiting.first {
            actions = withdraw(request) + [.reject(request, .connectFailed(member))]
        }
        return actions + advance(target)
    }

    /// The answer to `check`. If the connection cannot serve, the request takes the next one, at its old place in line.
    mutating func didCheck(_ member: Member, isUsable: Bool) -> [PoolAction] {
        guard let connection = members[member], case .checked(let request) = connection.use else { return [] }
        if isUsable { return lend(member, to: request) }
        drop(member)
        requests[request]?.checks = nil
        line(of: connection.target).waiting.insert(request)
        return [.close(member)] + advance(connection.target)
    }

    private mutating func lend(_ member: Member, to request: Request) -> [PoolAction] {
        requests[request]?.checks = nil
        _ = withdraw(request)
        stopUsing(member)
        members[member]?.use = .leased
        leasedCount += 1
        if let target = members[member]?.target { lines[target]?.leased += 1 }
        return [.lend(member, request)]
    }

    /// The lease of a connection is over.
    mutating func didReturn(_ member: Member, isReusable: Bool, at now: LoopInstant) -> [PoolAction] {
        guard let connection = members[member], case .leased = connection.use else { return [] }
        if isReusable && !connection.isOld && phase != .closed { return park(member, connection.target, at: now) }
        drop(member)
        return [.close(member)] + advance(connection.target)
    }

    /// Makes the connection idle; at once busy again if a request waits. If a request for another target has waited longer,
    /// and only the total limit keeps it from a connection, then this one gives up its place.
    private mutating func park(_ member: Member, _ target: PoolTarget, at now: LoopInstant) -> [PoolAction] {
        let next = lines[target]?.waiting.first
        let isWanted = next != nil
        if phase != .open && !isWanted || blocked.first ?? .max < next ?? .max {
            drop(member)
            return [.close(member)] + advance(target)
        }
        stopUsing(member)
        members[member]?.use = .idle(since: now)
        lines[target]?.idle.append(member)
        idle.append(member)
        return isWanted ? advance(target) : [.park(member)]
    }

    /// The peer of an idle connection has gone, or the connection has failed.
    mutating func didLose(_ member: Member) -> [PoolAction] {
        guard let connection = members[member], case .idle = connection.use else { return [] }
        drop(member)
        return [.close(member)] + advance(connection.target)
    }

    mutating func drop(_ member: Member) {
        guard let target = members[member]?.target else { return }
        stopUsing(member)
        members[member] = nil
        aging.remove(member)
        if let line = lines[target] {
            line.count -= 1
            updateBlocked(line)
        }
        forgetIfEmpty(target)
    }

    /// Undoes what the present use of a member has counted.
    private mutating func stopUsing(_ member: Member) {
        guard let connection = members[member], let line = lines[connection.target] else { return }
        switch connection.use {
        case .connecting:
            connectingCount -= 1
            line.connecting.remove(member)
            updateBlocked(line)
        case .idle:
            idle.remove(member)
            line.idle.remove(member)
        case .leased:
            leasedCount -= 1
            line.leased -= 1
        case .checked: break
        }
    }
}
