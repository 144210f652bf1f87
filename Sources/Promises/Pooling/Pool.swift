import Reactor

/// Resources that are made when they are needed, kept while they are idle, and used again: connections, or sessions with
/// what they know beside their connection. Their number is limited, for each key and for all; requests beyond wait, in order.
///
/// ```swift
/// let pool = Pool<Connection>(limits: PoolLimits(perKey: 4))
/// func ask(_ question: String) -> Promise<String?> {
///     pool.with("cache.internal:7000") { connection in
///         connection.write(question + "\n").then { connection.readLine() }
///     }
/// }
/// ```
///
/// A pool belongs to this thread's loop, as its resources do: a server on several loops has a pool on each, in a `LoopLocal`.
///
/// Of several idle resources of a key the one that was used last is used first, so that those which are not needed reach
/// `idleTimeout`. An idle resource does not keep the loop alive.
///
/// Requests that wait, resources that are being made and resources that are in use retain the pool. When the last reference
/// to it is released, it closes the idle ones.
public final class Pool<Resource>: PoolOwner {
    // `@exclusivity(unchecked)`: one thread, and no foreign code runs while they are changed.
    @usableFromInline let loop: EventLoop
    let state: PoolState
    let makeResource: (PoolMember) throws -> Promise<Resource>
    let checkResource: ((Resource) throws -> Promise<Void>)?
    let closeResource: ((Resource) -> Void)?
    let keepsAfter: (any Error) -> Bool
    let defaultKey: PoolKey
    let budget: MemoryBudget?
    @exclusivity(unchecked) var timer = PoolTimer()
    /// How many of the loop's background sources belong to this pool.
    @exclusivity(unchecked) var backgroundSources = 0
    @exclusivity(unchecked) var draining: PoolDrain?

    /// A pool without resources, on this thread's loop.
    /// - Parameters:
    ///   - limits: how many resources there may be, and how long things may take. If a number is below its minimum, each
    ///     request is rejected with `PromiseError.badInput`.
    ///   - make: makes a resource for a key. If it throws or its promise is rejected, the request that has waited longest is
    ///     rejected with the error. The promise is cancelled when no request needs the resource any more, and at
    ///     `makeTimeout`: work that it stops closes what it has opened. The pool retains this closure, and the following ones.
    ///   - check: is called with each resource that has been used before, when it is to be used again. If it throws or its
    ///     promise is rejected, the resource is closed, and the request gets another one. Its time counts as waiting.
    ///   - close: ends a resource that the pool gives up: called exactly once for each that was made.
    ///   - keepsAfter: whether a resource can be used again although a body was rejected with this error. It is not asked
    ///     after a cancellation, which may have left anything half done: the resource is closed. Without it, each error
    ///     closes the resource.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public convenience init(
        limits: PoolLimits = PoolLimits(), make: @escaping (PoolKey) throws -> Promise<Resource>,
        check: ((Resource) throws -> Promise<Void>)? = nil, close: ((Resource) -> Void)? = nil,
        keepsAfter: @escaping (any Error) -> Bool = { _ in false }
    ) { self.init(limits, "the pool", { try make($0.line.key) }, check, close, keepsAfter) }

    init(
        _ limits: PoolLimits, _ defaultKey: PoolKey, _ make: @escaping (PoolMember) throws -> Promise<Resource>,
        _ check: ((Resource) throws -> Promise<Void>)?, _ close: ((Resource) -> Void)?,
        _ keepsAfter: @escaping (any Error) -> Bool
    ) {
        loop = EventLoop.ofCurrentThread
        state = PoolState(limits)
        budget = limits.memoryLimit.map { [loop, state] in
            MemoryBudget($0, on: loop, didEvict: {}) { [weak state] in
                state?.members.all.compactMap { member in member.connection.map { ($0, nil) } } ?? []
            }
        }
        self.defaultKey = defaultKey
        (makeResource, checkResource, closeResource, self.keepsAfter) = (make, check, close, keepsAfter)
    }

    // Whatever else a pool has, retains it: only idle resources are left. The poller retains idle connections, by their watches.
    deinit {
        loop.performCleanup { [loop, timer, state, closeResource, backgroundSources] in
            let hasEnded = loop.hasEnded
            if !hasEnded {
                var timer = timer
                timer.cancel()
                loop.changeBackgroundSources(by: -backgroundSources)
            }
            for member in state.members.all {
                // As in `loopWillEnd`, which is not called any more.
                if hasEnded { member.connection.take()?.loopWillEnd() }
                member.close(closeResource)
            }
            // Requests that waited, and whose handlers were discarded, and their lines retain each other.
            if hasEnded { state.abort() }
        }
    }
}

/// A resource as an object.
@usableFromInline
final class PoolBox<Resource> {
    @usableFromInline let resource: Resource

    init(_ resource: Resource) { self.resource = resource }
}

extension PoolMember {
    /// The box of a member that has been made.
    func box<Resource>(of type: Resource.Type) -> PoolBox<Resource> {
        // Sound because only the one pool of this member stores a box in it, of the type with which it reads it.
        unsafeDowncast(resource!, to: PoolBox<Resource>.self)
    }

    /// Ends the resource and its connection, at most once.
    func close<Resource>(_ body: ((Resource) -> Void)?) {
        let ended = resource == nil ? nil : box(of: Resource.self)
        resource = nil
        connection.map { Parking.close($0) }
        (connection, parking) = (nil, nil)
        if let ended { body?(ended.resource) }
    }
}
