import Reactor

// Reads a pending core for a console, and changes nothing.

/// The work at the root of a chain, as far as the core shows.
package enum PromiseWork: Sendable, Hashable {
    /// A timer that is due in this number of nanoseconds.
    case timer(Int64)
    /// Input on the connection with this peer or descriptor.
    case input(String)
    /// A resolver, which any thread may use.
    case resolver
    /// A job of the thread pool with this identity in `InspectedFacts`, or of another dispatcher.
    case job(pool: ObjectIdentifier?)
    /// A place in a limiter, with the limiter's numbers.
    case place(limit: Int, inUse: Int, waiting: Int)
    case ready
    /// A promise that was made before tracing began, at this line if known.
    case untraced(CallSite?)
    /// A combinator that waits for this many unsettled sources. The tree shows the first traced one as its parent.
    case sources(Int)
    case unknown
}

extension TraceRegistry.TracedPromises {
    /// Finds the recorded promise or the work that a pending core waits for. Called on the thread of the core's loop,
    /// under the lock.
    func wait(of traced: TracedCore) -> (source: TraceRecord?, work: PromiseWork) {
        // The core is alive: its `deinit` would need the lock.
        CoreRef(at: traced.address).borrow { core in
            let word = core.sourceWord.load()
            if word.isWaiting {
                // Only the address is read, because another thread may own the source, and release it unless it is
                // recorded.
                let source = self.record(at: word.core.pointer)
                guard core.sourceWord.load() == word else { return (nil, .ready) }
                return (source, .untraced(nil))
            }
            if word.mark == .fulfilled || word.mark == .rejected { return (nil, .ready) }
            if let dispatched = core as? DispatchedPromise { return (nil, .job(pool: dispatched.pool)) }
            if core.role.contains(.externallySettled) { return (nil, .resolver) }
            guard core.loop == .ofThisThread else { return (nil, .unknown) }
            if let combinator = core.asCombinator {
                let inputs = combinator.inputs
                let sources = inputs.lazy.compactMap { input -> TraceRecord? in
                    let word = input.sourceWord.load()
                    return word.isWaiting ? self.record(at: word.core.pointer) : nil
                }
                return (sources.first, .sources(inputs.count))
            }
            if let limiter = Limiter.limiter(of: core) {
                return (nil, .place(limit: limiter.limit, inUse: limiter.active, waiting: limiter.waiting))
            }
            if let timer = TimerPromise.timer(of: core) {
                return (nil, EventLoop.ofCurrentThread.time(untilTimer: timer).map { .timer($0) } ?? .unknown)
            }
            return (nil, .unknown)
        }
    }
}
