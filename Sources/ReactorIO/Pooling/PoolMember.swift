import Promises
import Reactor

// The objects that `PoolState` moves: resources, requests, and the state per key. Their fields are
// `@exclusivity(unchecked)`: one thread, and none is being changed while foreign code runs.

/// A resource of a pool, from its making to its end.
final class PoolMember: Linked {
    enum Use {
        case making
        case idle(since: LoopInstant)
        case checked(PoolRequest)
        case leased
        /// Closed, or about to be closed by an action.
        case gone
    }

    let number: Int
    let line: PoolLine
    @exclusivity(unchecked) var use = Use.making
    /// When it was made.
    @exclusivity(unchecked) var opened = LoopInstant.distantFuture
    /// How long its peer keeps it without a request, as far as it has said so.
    @exclusivity(unchecked) var idleLimit: Duration?
    /// Whether its lifetime is over: it is closed when its request has ended.
    @exclusivity(unchecked) var isOld = false
    enum List: Int { case all, ofLine, idle, aging }
    @exclusivity(unchecked) private var links: InlineArray<4, Links<PoolMember>> = .init(repeating: Links())

    /// The resource for the pool; the state does not use this.
    @exclusivity(unchecked) var resource: AnyObject?
    /// The resource's connection, from its connect on.
    @exclusivity(unchecked) var connection: Connection? {
        didSet { if let connection { budget?.begin(for: connection) } }
    }
    @exclusivity(unchecked) var budget: MemoryBudget?
    /// The watch of the connection while it is idle.
    @exclusivity(unchecked) var parking: Parking?
    /// The filter that was installed before the first request.
    @exclusivity(unchecked) var filter: InstalledFilter?
    /// The making, the check or the request that uses it, until that settles.
    @exclusivity(unchecked) var work: PromiseCore?
    /// Whether no request has used it yet.
    @exclusivity(unchecked) var isFresh = true

    init(_ number: Int, _ line: PoolLine) {
        self.number = number
        self.line = line
    }

    subscript(list: List) -> Links<PoolMember> {
        _read { yield links[list.rawValue] }
        _modify { yield &links[list.rawValue] }
    }

    /// Cancels `work` if user code, which has just started it, has also ended the pool or the request.
    func begin(_ work: PromiseCore) { if case .gone = use { work.cancel() } else { self.work = work } }

    var isLeased: Bool { if case .leased = use { true } else { false } }
    var isMaking: Bool { if case .making = use { true } else { false } }
}

/// A request for a resource, which becomes its lease.
@usableFromInline
package final class PoolRequest: Numbered, Linked {
    let number: Int
    let line: PoolLine
    let since: LoopInstant
    /// Its index in line.
    @exclusivity(unchecked) var place: Int?
    @exclusivity(unchecked) private var links = Links<PoolRequest>()
    /// The resource that is being checked for the request; `nil` while it waits in line.
    @exclusivity(unchecked) var checks: PoolMember?

    // The remaining fields are for the pool; the state does not use them.

    /// Set while it waits, unless it is answered at once.
    @exclusivity(unchecked) var resolver: Resolver<PoolRequest>?
    /// Why it was refused, at once.
    @exclusivity(unchecked) var refusal: (any Error)?
    /// The lent resource.
    @exclusivity(unchecked) private(set) var member: PoolMember?
    /// The pool that an unfinished lease returns to.
    @exclusivity(unchecked) private var owner: (any PoolOwner)?
    /// Whether another request has used the resource, and how much its connection had delivered then.
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

    /// Makes this object a lease, which is returned when the object is released unless `finish` was called.
    func begin(with member: PoolMember, of owner: any PoolOwner) {
        (self.member, self.owner) = (member, owner)
        (isReused, bytesBefore) = (!member.isFresh, member.deliveredBytes)
        member.isFresh = false
    }

    /// - Returns: false if the lease has ended already.
    func finish() -> Bool { owner.take() != nil }

    /// Ends the lease before the promise of its body settles, which must then be fulfilled: the body no longer needs
    /// the resource.
    /// - Parameter idleLimit: the time after which no further request may use the resource, although its peer has not
    ///   ended it yet; `nil` for no limit but the pool's.
    package func giveBack(idleLimit: Duration? = nil) {
        member?.idleLimit = idleLimit
        owner?.didFinish(self)
    }

    /// Cancelled if the pool takes the resource back.
    @usableFromInline
    func note(_ work: PromiseCore) { if owner != nil { member?.begin(work) } }
}

/// The state of one key.
final class PoolLine: Numbered {
    /// The first form of the key, and others that were used.
    var keys: [PoolKey]
    /// Members in any state.
    @exclusivity(unchecked) var count = 0
    @exclusivity(unchecked) var leased = 0
    let making = LinkedList<PoolMember>(.ofLine)
    /// Ordered by last use, the latest at the end.
    let idle = LinkedList<PoolMember>(.ofLine)
    /// The oldest request is first.
    @exclusivity(unchecked) var waiting = AscendingOrder<PoolRequest>()
    /// The request for which it is in `PoolState.blocked`.
    @exclusivity(unchecked) var blockedRequest: PoolRequest?
    @exclusivity(unchecked) var place: Int?

    init(_ key: PoolKey) { keys = [key] }

    var key: PoolKey { keys[0] }
    var number: Int { blockedRequest?.number ?? .max }
}

/// Whether an idempotent request has met a stale connection.
@usableFromInline
final class PoolRetry {
    var isNeeded = false

    @usableFromInline init() {}
}

/// The pool, for its parts.
protocol PoolOwner: AnyObject {
    var loop: EventLoop { get }
    /// The peer of an idle connection has closed, or the connection has failed.
    func didLose(_ member: PoolMember)
    /// The body of a lease no longer needs the resource.
    func didFinish(_ lease: PoolRequest)
    /// A lease was released before its request could begin: the request was cancelled after the resource had been lent
    /// to it.
    func didNotUse(_ member: PoolMember)
}
