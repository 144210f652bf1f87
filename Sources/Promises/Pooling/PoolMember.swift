import Reactor

// The objects that `PoolState` moves: resources, requests, and what one key has of them. Their fields are
// `@exclusivity(unchecked)`: one thread, and none is being changed while foreign code runs.

/// A resource of a pool, from its making to its end.
final class PoolMember: Linked {
    enum Use {
        case making
        case idle(since: LoopInstant)
        case checked(PoolRequest)
        case leased
        /// Closed, or to be closed by an action.
        case gone
    }

    let number: Int
    let line: PoolLine
    @exclusivity(unchecked) var use = Use.making
    /// When it was made.
    @exclusivity(unchecked) var opened = LoopInstant.distantFuture
    /// Whether its lifetime is over: it is closed when its request has ended.
    @exclusivity(unchecked) var isOld = false
    enum List: Int { case all, ofLine, idle, aging }
    @exclusivity(unchecked) private var links: InlineArray<4, Links<PoolMember>> = .init(repeating: Links())

    /// What the pool has of it; the state does not look at this.
    @exclusivity(unchecked) var resource: AnyObject?
    /// The connection under the resource, from its connect on.
    @exclusivity(unchecked) var connection: Connection? {
        didSet { if let connection { budget?.begin(for: connection) } }
    }
    /// That of the pool's connections.
    @exclusivity(unchecked) var budget: MemoryBudget?
    /// The watch of the connection while it is idle.
    @exclusivity(unchecked) var parking: Parking?
    /// The filter that was installed before the first request.
    @exclusivity(unchecked) var filter: InstalledFilter?
    /// The making, the check or the request that uses it, until that settles.
    @exclusivity(unchecked) var work: PromiseCore?
    /// Whether no request has used it.
    @exclusivity(unchecked) var isFresh = true

    init(_ number: Int, _ line: PoolLine) {
        self.number = number
        self.line = line
    }

    subscript(list: List) -> Links<PoolMember> {
        _read { yield links[list.rawValue] }
        _modify { yield &links[list.rawValue] }
    }

    var isLeased: Bool { if case .leased = use { true } else { false } }
    var isMaking: Bool { if case .making = use { true } else { false } }
}

/// A request for a resource, and then its lease.
@usableFromInline
package final class PoolRequest: Numbered, Linked {
    let number: Int
    let line: PoolLine
    let since: LoopInstant
    /// Its place in line.
    @exclusivity(unchecked) var place: Int?
    @exclusivity(unchecked) private var links = Links<PoolRequest>()
    /// The resource that is being checked for the request; `nil` while it stands in line.
    @exclusivity(unchecked) var checks: PoolMember?

    // The rest is the pool's; the state does not look at it.

    /// While it waits, unless it is answered at once.
    @exclusivity(unchecked) var resolver: Resolver<PoolRequest>?
    /// Why it got nothing, at once.
    @exclusivity(unchecked) var refusal: (any Error)?
    /// What is lent to it.
    @exclusivity(unchecked) private(set) var member: PoolMember?
    /// The pool to which a lease returns that has not ended.
    @exclusivity(unchecked) private var owner: (any PoolOwner)?
    /// Whether another request has used the resource, and what its connection had delivered then.
    @exclusivity(unchecked) package private(set) var isReused = false
    @exclusivity(unchecked) private(set) var bytesBefore = 0
    @exclusivity(unchecked) var retry: PoolRetry?

    init(_ number: Int, _ line: PoolLine, at now: LoopInstant) {
        self.number = number
        self.line = line
        since = now
    }

    subscript(list: Void) -> Links<PoolRequest> {
        _read { yield links }
        _modify { yield &links }
    }

    // In a job, since a lease may be released anywhere in the library, and on any thread.
    deinit {
        guard let owner, let member else { return }
        let loop = owner.loop
        loop.performCleanup { if !loop.hasEnded { loop.enqueue { owner.didNotUse(member) } } }
    }

    /// From now on it is a lease, which is returned when this object is released unless `finish` was called.
    func begin(with member: PoolMember, of owner: any PoolOwner) {
        (self.member, self.owner) = (member, owner)
        (isReused, bytesBefore) = (!member.isFresh, member.deliveredBytes)
        member.isFresh = false
    }

    /// - Returns: false if the lease has ended before.
    func finish() -> Bool { owner.take() != nil }

    /// Ends the lease before the promise of its body settles, which must then be fulfilled: the body has done with the resource.
    package func giveBack() { owner?.didFinish(self) }

    /// What is cancelled if the pool takes the resource back.
    @usableFromInline
    func note(_ work: PromiseCore) { if owner != nil { member?.work = work } }
}

/// What one key has.
final class PoolLine: Numbered {
    /// The first form, and others of it that were used.
    var keys: [PoolKey]
    /// Members in any state.
    @exclusivity(unchecked) var count = 0
    @exclusivity(unchecked) var leased = 0
    let making = LinkedList<PoolMember>(.ofLine)
    /// The one that was used last is at the end.
    let idle = LinkedList<PoolMember>(.ofLine)
    /// The oldest request is the first.
    @exclusivity(unchecked) var waiting = AscendingOrder<PoolRequest>()
    /// The request for which it is in `PoolState.blocked`.
    @exclusivity(unchecked) var blockedRequest: PoolRequest?
    @exclusivity(unchecked) var place: Int?

    init(_ key: PoolKey) { keys = [key] }

    var key: PoolKey { keys[0] }
    var number: Int { blockedRequest?.number ?? .max }
}

/// Whether an idempotent request is to be made again.
@usableFromInline
final class PoolRetry {
    var isNeeded = false

    @usableFromInline init() {}
}

/// What a pool is for its parts.
protocol PoolOwner: AnyObject {
    var loop: EventLoop { get }
    /// The peer of an idle connection has gone, or the connection has failed.
    func didLose(_ member: PoolMember)
    func timerFired()
    func loopWillEnd()
    /// The body of a lease has done with the resource.
    func didFinish(_ lease: PoolRequest)
    /// A lease was released before its request could begin: the request was cancelled after it had been given the resource.
    func didNotUse(_ member: PoolMember)
}
