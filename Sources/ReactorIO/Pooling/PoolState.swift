import Promises
import Reactor

/// The states of a pool's resources and requests, and the rules that match them. Has no side effects: each event
/// appends actions to `actions`, which `Pool` executes in order.
///
/// ```
///  a resource:
///            didMake, none waits          a request takes it
///  [making] ------------------> [idle] -----------------------> [checked]
///    |   |                       ^  |                             |   |
///    |   | didMake               |  | expired, lost               |   | failed
///    |   +-------------> [leased]+  v                   passed    |   v
///    |  failed, cancelled ^ |     closed   [leased] <-------------+  closed
///    v                    | | returned, one waits: [checked]
///  closed                 | v
///                         | returned unusable: closed
/// ```
///
/// Invariants, per key:
/// - resources in all states number at most `limits.perKey`, and for all keys together at most `limits.total`;
/// - a request waits in line only while no resource is idle;
/// - while a request waits in line and there is room, a resource is being made for it. Freeing a place always continues
///   with the next request in line (`advance`), so that a failure strands none;
/// - while the total limit denies a key another resource, no resource of any key is idle.
///
/// Finding an idle resource for a request costs one dictionary lookup, or none if the previous request had the same
/// key.
final class PoolState {
    enum DrainPhase { case open, draining, closed }

    // `@exclusivity(unchecked)`: one thread, and no foreign code runs during a change.
    let limits: PoolLimits
    @exclusivity(unchecked) var phase = DrainPhase.open
    /// The pending actions, in order. Each is removed before it is executed.
    @exclusivity(unchecked) var actions = PoolActions()
    @exclusivity(unchecked) private(set) var lines: [PoolKey: PoolLine] = [:]
    @exclusivity(unchecked) private var lastKey: PoolKey?
    @exclusivity(unchecked) private var lastLine: PoolLine?
    let members = LinkedList<PoolMember>(.all)
    /// The idle resources of all keys. All have the same time limit, so the one idle longest comes first and is due
    /// first. The same holds for `waiting` and `aging`.
    let idle = LinkedList<PoolMember>(.idle)
    let waiting = LinkedList<PoolRequest>(())
    /// The resources within their lifetime.
    let aging = LinkedList<PoolMember>(.aging)
    @exclusivity(unchecked) var blocked = AscendingOrder<PoolLine>()
    @exclusivity(unchecked) private var nextMember = 0
    @exclusivity(unchecked) private var nextRequest = 0
    @exclusivity(unchecked) private(set) var makingCount = 0
    @exclusivity(unchecked) private(set) var leasedCount = 0
    @exclusivity(unchecked) private(set) var ends = InspectedEnds()

    init(_ limits: PoolLimits) { self.limits = limits }

    deinit { InspectedObjects.remove(self) }

    /// True when a closed pool has nothing left.
    var isFinished: Bool { phase != .open && waiting.isEmpty && members.isEmpty }

    private func line(of key: PoolKey) -> PoolLine {
        if let lastLine, lastKey == key { return lastLine }
        let line = lines[key] ?? newForm(key)
        (lastKey, lastLine) = (key, line)
        return line
    }

    private func newForm(_ key: PoolKey) -> PoolLine {
        let unique = key.unique
        let line = lines[unique] ?? PoolLine(unique)
        if unique != key { line.keys.append(key) }
        for form in [unique, key] { lines[form] = line }
        return line
    }

    /// Needed because a pool may see any number of keys.
    private func forgetIfEmpty(_ line: PoolLine) {
        guard line.count == 0, line.waiting.isEmpty else { return }
        for key in line.keys { lines[key] = nil }
        if lastLine === line { lastLine = nil }
    }

    // MARK: Requests

    /// Adds a request. One `lend` or `reject` answers it, unless it is cancelled first.
    func request(_ key: PoolKey, at now: LoopInstant) -> PoolRequest {
        var line = line(of: key)
        if closeOutlived(line, at: now) { line = self.line(of: key) }
        let request = PoolRequest(nextRequest, line, at: now)
        nextRequest += 1
        let isTooMany = !hasRoom(line) && line.waiting.count - line.making.count >= limits.waiting
        if phase != .open || isTooMany {
            forgetIfEmpty(line)
            let error =
                isTooMany && phase == .open
                ? PoolError.tooManyWaiting(key: line.key, limit: limits.waiting) : .closed(key: line.key)
            actions.append(.reject(request, error))
            return request
        }
        waiting.append(request)
        // While a resource is idle, no request waits in line.
        if let member = line.idle.last {
            check(member, for: request)
        } else {
            line.waiting.insert(request)
            advance(line)
        }
        return request
    }

    /// Closes idle resources whose peer is about to end them, because that end could cross a request in transit.
    /// - Returns: true if it closed any. The line may then be forgotten.
    private func closeOutlived(_ line: PoolLine, at now: LoopInstant) -> Bool {
        var isClosed = false
        while let member = line.idle.last, let limit = member.idleLimit, case .idle(let since) = member.use,
            since.advanced(by: limit) <= now
        {
            drop(member)
            actions.append(.close(member))
            isClosed = true
        }
        return isClosed
    }

    func cancel(_ request: PoolRequest) {
        guard withdraw(request) else { return }
        cancelSurplus(request.line)
        advance(request.line)
    }

    /// Removes a request, and closes the resource that is being checked for it, because that check may still be
    /// answered.
    /// - Returns: true if the request had no answer yet.
    @discardableResult
    func withdraw(_ request: PoolRequest) -> Bool {
        guard waiting.remove(request) else { return false }
        let line = request.line
        line.waiting.remove(request)
        updateBlocked(line)
        if let member = request.checks {
            request.checks = nil
            drop(member)
            actions.append(.abort(member))
        }
        forgetIfEmpty(line)
        return true
    }

    func cancelSurplus(_ line: PoolLine) {
        while line.making.count > line.waiting.count, let member = line.making.last {
            drop(member)
            actions.append(.cancelMake(member))
        }
    }

    func advance(_ line: PoolLine) {
        while let request = line.waiting.first, let member = line.idle.last {
            line.waiting.remove(request)
            check(member, for: request)
        }
        updateBlocked(line)
        if limits.total == .max {
            while needsMember(line) { make(line) }
        } else {
            makeForBlocked()
        }
    }

    private func check(_ member: PoolMember, for request: PoolRequest) {
        stopUsing(member)
        member.use = .checked(request)
        request.checks = member
        actions.append(.check(member))
    }

    /// True when a request in line has no resource being made for it, and the key's limit allows one.
    func needsMember(_ line: PoolLine) -> Bool {
        line.making.count < line.waiting.count && line.count < limits.perKey
    }

    func make(_ line: PoolLine) {
        let member = PoolMember(nextMember, line)
        nextMember += 1
        line.count += 1
        line.making.append(member)
        makingCount += 1
        members.append(member)
        actions.append(.make(member))
    }

    // MARK: Resources

    func didMake(_ member: PoolMember, at now: LoopInstant) {
        guard member.isMaking else { return }
        member.opened = now
        if limits.maxLifetime != nil { aging.append(member) }
        if let request = member.line.waiting.first { lend(member, to: request) } else { park(member, at: now) }
    }

    /// Rejects the longest waiting request, and makes another resource for the next one.
    func makeDidFail(_ member: PoolMember, _ error: any Error) {
        guard member.isMaking else { return }
        let line = member.line
        drop(member)
        if let request = line.waiting.first {
            withdraw(request)
            actions.append(.reject(request, error))
        }
        advance(line)
    }

    /// Lends a usable resource. Otherwise the request keeps its place in line, and gets the next resource.
    func didCheck(_ member: PoolMember, isUsable: Bool) {
        guard case .checked(let request) = member.use else { return }
        if isUsable { return lend(member, to: request) }
        request.checks = nil
        member.line.waiting.insert(request)
        close(member)
    }

    private func lend(_ member: PoolMember, to request: PoolRequest) {
        request.checks = nil
        withdraw(request)
        stopUsing(member)
        member.use = .leased
        leasedCount += 1
        member.line.leased += 1
        actions.append(.lend(member, request))
    }

    func didReturn(_ member: PoolMember, isReusable: Bool, at now: LoopInstant) {
        guard member.isLeased else { return }
        if isReusable && !member.isOld && phase != .closed { park(member, at: now) } else { close(member) }
    }

    /// Makes the resource idle, or lends it at once. If only the total limit denies a resource to another key's
    /// request, and that request has waited longer, this resource gives up its place.
    private func park(_ member: PoolMember, at now: LoopInstant) {
        let line = member.line
        let next = line.waiting.first?.number ?? .max
        if phase != .open && next == .max || blocked.first?.number ?? .max < next { return close(member) }
        stopUsing(member)
        member.use = .idle(since: now)
        line.idle.append(member)
        idle.append(member)
        if next == .max { actions.append(.park(member)) } else { advance(line) }
    }

    func didLose(_ member: PoolMember) {
        if case .idle = member.use { close(member) }
    }

    private func close(_ member: PoolMember) {
        drop(member)
        actions.append(.close(member))
        advance(member.line)
    }

    func drop(_ member: PoolMember) {
        stopUsing(member)
        member.use = .gone
        members.remove(member)
        aging.remove(member)
        member.line.count -= 1
        updateBlocked(member.line)
        forgetIfEmpty(member.line)
    }

    private func stopUsing(_ member: PoolMember) {
        let line = member.line
        switch member.use {
        case .making:
            makingCount -= 1
            line.making.remove(member)
            updateBlocked(line)
        case .idle:
            idle.remove(member)
            line.idle.remove(member)
        case .leased:
            leasedCount -= 1
            ends.add()
            line.leased -= 1
        case .checked, .gone: break
        }
    }
}
