import Promises
import Reactor

extension Pool {
    /// Closes the pool: idle resources at once, the others when their requests have ended. Waiting requests, and all
    /// later ones, are rejected with `PoolError.closed`.
    public func close() {
        loop.assertOwner()
        state.close()
        perform()
    }

    /// Ends the pool in an orderly way, within `deadline`: closes idle resources at once, and lets existing requests
    /// finish, including waiting ones. At the deadline it rejects those that still wait, closes the resources in use
    /// and cancels the promises of their requests. New requests are rejected with `PoolError.closed`.
    ///
    /// A request that waits for the result waits until the deadline.
    /// - Parameter deadline: the time that the requests have from now on. Ignored in further calls.
    /// - Returns: a guarantee that is fulfilled when the last resource is closed. Further calls return the same one.
    @discardableResult
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func drain(deadline: Duration) -> Guarantee<PoolDrainResult> {
        loop.assertOwner()
        if let draining { return draining.guarantee }
        let drain = PoolDrain(state.waiting.count + state.leasedCount)
        draining = drain
        // First, so that the timer exists when the last resource is closed inside `perform`.
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
    /// Requests that ended before the deadline, fulfilled or not.
    public internal(set) var finished = 0
    /// Requests whose resources were closed at the deadline, or that ended with the loop; also those that had ended
    /// with queued bytes that the peer had not taken by then.
    public internal(set) var aborted = 0
    /// Requests without a resource at the deadline.
    public internal(set) var rejected = 0
}

final class PoolDrain {
    let guarantee: Guarantee<PoolDrainResult>
    private let resolve: (PoolDrainResult) -> Void
    /// The number of requests at the beginning.
    private let all: Int
    var result = PoolDrainResult()
    /// The deadline, until the end.
    var timer: EventLoop.Timer?

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
        guard let timer = timer.take() else { return }
        timer.cancel()
        result.finished = max(all - result.aborted - result.rejected, 0)
        resolve(result)
    }
}
