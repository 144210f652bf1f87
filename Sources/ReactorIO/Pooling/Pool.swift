import Promises
import Reactor

/// Resources that are made on demand, kept while idle, and reused: connections, or sessions with state. Their number is
/// limited, per key and in total. Further requests wait in order.
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
/// A pool and its resources belong to this thread's loop. A server on several loops has a pool on each, in a
/// `LoopLocal`.
///
/// The idle resource that was used last is reused first, so that surplus ones reach `idleTimeout`. Idle resources do
/// not keep the loop alive. Waiting requests, and resources being made or in use, retain the pool. Releasing its last
/// reference closes the idle resources.
public final class Pool<Resource>: PoolOwner {
    // `@exclusivity(unchecked)`: one thread, and no foreign code runs during a change.
    @usableFromInline let loop: EventLoop
    let state: PoolState
    let makeResource: (PoolMember) throws -> Promise<Resource>
    let checkResource: ((Resource) throws -> Promise<Void>)?
    let closeResource: ((Resource) -> Void)?
    let keepsAfter: (any Error) -> Bool
    let defaultKey: PoolKey
    let budget: MemoryBudget?
    @exclusivity(unchecked) var timer = PoolTimer()
    @exclusivity(unchecked) var backgroundSources = 0
    @exclusivity(unchecked) var draining: PoolDrain?

    /// Makes a pool on this thread's loop.
    /// - Parameters:
    ///   - limits: the limits on numbers and times. A number below its minimum rejects each request with
    ///     `PromiseError.badInput`.
    ///   - make: makes a resource for a key. Its error rejects the longest waiting request. Its promise is cancelled at
    ///     `makeTimeout`, and when no request needs the resource any more. Cancelled work closes whatever it has
    ///     opened. The pool retains this closure and the following ones.
    ///   - check: called before each reuse of a resource. If it throws or its promise is rejected, the resource is
    ///     closed, and the request gets another. The time of the check counts as waiting.
    ///   - close: ends a resource that the pool discards. Called exactly once per resource.
    ///   - keepsAfter: returns true if a resource can be reused after this error from a `body`. Not called after a
    ///     cancellation: it may have left work half done, so the resource is closed. By default each error closes the
    ///     resource.
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
        InspectedObjects.add(state, ofLoop: loop.serial)
    }

    // Only idle resources are left, because everything else retains the pool. The poller still retains idle
    // connections, which it watches.
    deinit {
        loop.performCleanup { [loop, timer, state, closeResource, backgroundSources] in
            let hasEnded = loop.hasEnded
            if !hasEnded {
                var timer = timer
                timer.cancel()
                loop.changeBackgroundSources(by: -backgroundSources)
            }
            for member in state.members.all {
                // Done here, because `loopWillEnd` is not called any more.
                if hasEnded { member.connection.take()?.loopWillEnd() }
                member.close(closeResource)
            }
            // Waiting requests with discarded handlers form a retain cycle with their lines.
            if hasEnded { state.abort() }
        }
    }
}

@usableFromInline
final class PoolBox<Resource> {
    @usableFromInline let resource: Resource

    init(_ resource: Resource) { self.resource = resource }
}

extension PoolMember {
    func box<Resource>(of type: Resource.Type) -> PoolBox<Resource> {
        // Sound because only this member's pool stores a box in `resource`, and reads it with the same type.
        unsafeDowncast(resource!, to: PoolBox<Resource>.self)
    }

    func close<Resource>(_ body: ((Resource) -> Void)?) {
        let ended = resource == nil ? nil : box(of: Resource.self)
        resource = nil
        connection.map { ParkedConnection.close($0) }
        (connection, parking) = (nil, nil)
        if let ended { body?(ended.resource) }
    }
}
