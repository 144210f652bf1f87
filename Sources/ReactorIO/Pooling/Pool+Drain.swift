import Promises
import Reactor

extension Pool {
    /// Closes the pool: idle resources at once, the others when their requests end. Waiting and later requests are
    /// rejected with `PoolError.closed`.
    public func close() {
        loop.assertOwner()
        state.close()
        perform()
    }

    /// Closes idle resources at once, rejects new requests with `PoolError.closed`, and lets earlier requests finish,
    /// even waiting ones. At the deadline, rejects waiting requests, closes the resources in use and cancels the
    /// promises of their requests.
    ///
    /// A request that itself waits for the drain's result never finishes before the deadline.
    /// - Parameter deadline: the time for the requests, from now on. Ignored in further calls.
    /// - Returns: a guarantee that is fulfilled when the last resource is closed. Further calls return the same one.
    @discardableResult
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func drain(deadline: Duration) -> Guarantee<PoolDrainResult> {
        loop.assertOwner()
        if let draining { return draining.guarantee }
        let drain = PoolDrain(state.waiting.count + state.leasedCount)
        draining = drain
        // Must exist before `perform`, which may close the last resource.
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

/// The counts of a drained pool's requests, by how they ended.
public struct PoolDrainResult: Hashable, Sendable {
    /// Requests that ended before the deadline, fulfilled or not.
    public internal(set) var finished = 0
    /// Requests whose resources were closed at the deadline or when the loop ended, and requests whose queued bytes the
    /// peer had not accepted by then.
    public internal(set) var aborted = 0
    /// Requests that had no resource at the deadline.
    public internal(set) var rejected = 0
}

final class PoolDrain {
    let guarantee: Guarantee<PoolDrainResult>
    private let resolve: (PoolDrainResult) -> Void
    private let all: Int
    var result = PoolDrainResult()
    var timer: EventLoop.Timer?

    init(_ all: Int) {
        self.all = all
        (guarantee, resolve) = Guarantee<PoolDrainResult>.pending()
    }

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
