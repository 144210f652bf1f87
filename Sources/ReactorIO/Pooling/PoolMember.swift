import Promises
import Reactor

// The objects that `PoolState` moves: resources, requests, and the state for each key. Their fields are
// `@exclusivity(unchecked)`: one thread, and no foreign code runs during a change.

final class PoolMember: Linked {
    enum Use {
        case making
        case idle(since: LoopInstant)
        case checked(PoolRequest)
        case leased
        /// Closed, or about to be.
        case gone
    }

    let number: Int
    let line: PoolLine
    @exclusivity(unchecked) var use = Use.making
    @exclusivity(unchecked) var opened = LoopInstant.distantFuture
    /// The time after which the peer ends the idle resource, if known.
    @exclusivity(unchecked) var idleLimit: Duration?
    /// True when its lifetime is over, so that it is closed when its request ends.
    @exclusivity(unchecked) var isOld = false
    enum List: Int { case all, ofLine, idle, aging }
    @exclusivity(unchecked) private var links: InlineArray<4, Links<PoolMember>> = .init(repeating: Links())

    @exclusivity(unchecked) var resource: AnyObject?
    /// The resource's connection, once connected.
    @exclusivity(unchecked) var connection: Connection? {
        didSet { if let connection { budget?.begin(for: connection) } }
    }
    @exclusivity(unchecked) var budget: MemoryBudget?
    @exclusivity(unchecked) var parking: ParkedConnection?
    @exclusivity(unchecked) var filter: InstalledFilter?
    /// The promise of the making, check or request that uses the resource, until it settles.
    @exclusivity(unchecked) var work: PromiseCore?
    @exclusivity(unchecked) var isFresh = true

    init(_ number: Int, _ line: PoolLine) {
        self.number = number
        self.line = line
    }

    subscript(list: List) -> Links<PoolMember> {
        _read { yield links[list.rawValue] }
        _modify { yield &links[list.rawValue] }
    }

    /// Stores `work`, or cancels it if starting it has already ended the pool or the request.
    func begin(_ work: PromiseCore) { if case .gone = use { work.cancel() } else { self.work = work } }

    var isLeased: Bool { if case .leased = use { true } else { false } }
    var isMaking: Bool { if case .making = use { true } else { false } }
}

/// A request for a resource, and later the lease of that resource.
@usableFromInline
package final class PoolRequest: Numbered, Linked {
    let number: Int
    let line: PoolLine
    let since: LoopInstant
    @exclusivity(unchecked) var place: Int?
    @exclusivity(unchecked) private var links = Links<PoolRequest>()
    /// The resource that is being checked for the request, if any.
    @exclusivity(unchecked) var checks: PoolMember?

    // Used only by the pool:

    /// Set while the request waits, unless it is answered at once.
    @exclusivity(unchecked) var resolver: Resolver<PoolRequest>?
    @exclusivity(unchecked) var refusal: (any Error)?
    @exclusivity(unchecked) private(set) var member: PoolMember?
    /// The pool to which an unfinished lease returns its resource.
    @exclusivity(unchecked) private var owner: (any PoolOwner)?
    /// True if another request has used the resource. `bytesBefore` counts the bytes that its connection had delivered
    /// by then.
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

    // Runs in a job, because a lease may be released anywhere in the library and on any thread.
    deinit {
        guard let owner, let member else { return }
        let loop = owner.loop
        loop.performCleanup { if !loop.hasEnded { loop.enqueue { owner.didNotUse(member) } } }
    }

    /// Begins the lease. Releasing it returns the resource, unless `finish` was called.
    func begin(with member: PoolMember, of owner: any PoolOwner) {
        (self.member, self.owner) = (member, owner)
        (isReused, bytesBefore) = (!member.isFresh, member.deliveredBytes)
        member.isFresh = false
    }

    /// - Returns: false if the lease has already ended.
    func finish() -> Bool { owner.take() != nil }

    /// Ends the lease before the promise of its closure settles. That promise must then be fulfilled.
    /// - Parameter idleLimit: the time after which no request may reuse the resource, even if its peer has not ended
    ///   it; `nil` for the pool's limit.
    package func giveBack(idleLimit: Duration? = nil) {
        member?.idleLimit = idleLimit
        owner?.didFinish(self)
    }

    @usableFromInline
    func note(_ work: PromiseCore) { if owner != nil { member?.begin(work) } }
}

final class PoolLine: Numbered {
    /// The first spelling of the key, and then all others that were used.
    var keys: [PoolKey]
    @exclusivity(unchecked) var count = 0
    @exclusivity(unchecked) var leased = 0
    let making = LinkedList<PoolMember>(.ofLine)
    /// The idle resources, the last used one at the end.
    let idle = LinkedList<PoolMember>(.ofLine)
    /// The waiting requests, oldest first.
    @exclusivity(unchecked) var waiting = AscendingOrder<PoolRequest>()
    @exclusivity(unchecked) var blockedRequest: PoolRequest?
    @exclusivity(unchecked) var place: Int?

    init(_ key: PoolKey) { keys = [key] }

    var key: PoolKey { keys[0] }
    var number: Int { blockedRequest?.number ?? .max }
}

/// The mark of an idempotent request whose connection was stale.
@usableFromInline
final class PoolRetry {
    var isNeeded = false

    @usableFromInline init() {}
}

protocol PoolOwner: AnyObject {
    var loop: EventLoop { get }
    /// Called when the peer of an idle connection has closed, or the connection has failed.
    func didLose(_ member: PoolMember)
    func didFinish(_ lease: PoolRequest)
    /// Called when a lease was released before its request began, because the request was cancelled.
    func didNotUse(_ member: PoolMember)
}
