import Reactor

extension Pool {
    /// Closes the pool: idle resources at once, those in use when their requests have ended. Requests that wait are
    /// rejected with `PoolError.closed`, and so is every further one.
    public func close() {
        loop.assertOwner()
        state.close()
        perform()
    }

    /// Ends the pool in an orderly way, within `deadline`: closes the idle resources at once, and lets the requests
    /// that have been made finish, those that wait for a resource included. At the deadline it rejects those that still
    /// wait, closes the resources in use and cancels the promises of their requests. Further requests are
    /// rejected with `PoolError.closed` from now on.
    ///
    /// A request that waits for the result waits until the deadline.
    /// - Parameter deadline: the time that the requests have, from now on. In a further call it has no effect.
    /// - Returns: a guarantee that is fulfilled when the last resource is closed, and that a further call returns
    ///   again.
    @discardableResult
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func drain(deadline: Duration) -> Guarantee<PoolDrainResult> {
        loop.assertOwner()
        if let draining { return draining.guarantee }
        let drain = PoolDrain(state.waiting.count + state.leasedCount)
        draining = drain
        // First, so that it is there when the last resource is closed inside `perform`.
        drain.timer = loop.schedule(after: deadline) { [self] in
            drain.noteRest(of: state)
            state.abort()
            perform()
        }
        state.drain()
        perform()
        return drain.guarantee
    }
}

/// How the requests of a drained pool ended.
public struct PoolDrainResult: Hashable, Sendable {
    /// Requests that had ended before the deadline, fulfilled or not.
    public internal(set) var finished = 0
    /// Requests whose resources were closed at the deadline, or that ended with the loop; also those that had ended
    /// and left a queue which the peer had not taken by then.
    public internal(set) var aborted = 0
    /// Requests that had no resource at the deadline.
    public internal(set) var rejected = 0
}

/// A pool's drain.
final class PoolDrain {
    let guarantee: Guarantee<PoolDrainResult>
    private let resolve: (PoolDrainResult) -> Void
    /// How many requests there were at the beginning.
    private let all: Int
    var result = PoolDrainResult()
    var timer: EventLoop.Timer?
    private var isFinished = false

    init(_ all: Int) {
        self.all = all
        (guarantee, resolve) = Guarantee<PoolDrainResult>.pending()
    }

    /// The requests that are about to be aborted and rejected.
    func noteRest(of state: PoolState) {
        result.rejected = state.waiting.count
        result.aborted = state.leasedCount
    }

    func finish() {
        if isFinished { return }
        isFinished = true
        timer?.cancel()
        timer = nil
        result.finished = max(all - result.aborted - result.rejected, 0)
        resolve(result)
    }
}
