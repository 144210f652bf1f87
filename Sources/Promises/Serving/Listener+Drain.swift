import Reactor
import Synchronization

/// How the connections of a listener ended that was drained.
public struct DrainResult: Hashable, Sendable {
    /// Those that were closed because they waited for their peers and owed them nothing.
    public internal(set) var idle = 0
    /// Those whose handlers came to their end by themselves.
    public internal(set) var finished = 0
    /// Those that were aborted at the deadline, or ended with a loop that did not go on until then.
    public internal(set) var aborted = 0
}

extension Listener {
    /// Ends it all in order, within `deadline`: stops listening at once, closes the connections of `serve` that are idle, lets
    /// the busy ones finish, and aborts at the deadline what is still there.
    ///
    /// *Idle* is a connection that waits in a read, of which no part of a frame has come, neither here nor to the kernel, and
    /// that has nothing queued: its peer has been answered as far as can be seen from here. It is closed at once, or within 20 ms of becoming so; the
    /// waiting read fails with `ECANCELED`. A connection is never idle whose handler reads on while answers are under way: in
    /// a `pipe`, or by the forms of `forEachLine` and `forEachChunk` that wait for nothing; nor one that is `busy`. At the
    /// deadline the rest are aborted and what their handlers wait for is cancelled. Clients in the backlog
    /// are reset; to take them, call `close(drain: true)` before.
    ///
    /// Connections that were taken with `accept` are not the listener's. Again: the same guarantee, and the first deadline
    /// stands.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func drain(deadline: Duration) -> Guarantee<DrainResult> {
        if let drain { return drain.guarantee }
        let drain = ListenerDrain(openConnections, account)
        self.drain = drain
        if !isClosed { end(nil) }
        branch.drain()
        group?.drain()
        if openConnections == 0 {
            drain.finish(active: 0)
        } else {
            drain.start(loop.schedule(after: deadline) { [self] in abortAll(drain) })
        }
        return drain.guarantee
    }

    private func abortAll(_ drain: ListenerDrain) {
        // Before: whoever is aborted may be the last. And a loop that does not answer must not delay it.
        drain.finish(active: openConnections)
        branch.abortAll()
        group?.abortAll()
    }
}

/// The draining of a listener, and afterwards its account.
final class ListenerDrain {
    let guarantee: Guarantee<DrainResult>
    private let resolve: (DrainResult) -> Void
    /// How many connections there were.
    private let all: Int
    private let account: DrainCounters
    private var deadline: EventLoop.Timer?
    private var isFinished = false

    init(_ all: Int, _ account: DrainCounters) {
        self.all = all
        self.account = account
        account.begin()
        (guarantee, resolve) = Guarantee<DrainResult>.pending()
    }

    func start(_ deadline: EventLoop.Timer) {
        // An inline handler of what was closed may have been the last.
        if isFinished { deadline.cancel() } else { self.deadline = deadline }
    }

    /// - Parameter active: how many connections are left, which are not waited for.
    func finish(active: Int) {
        if isFinished { return }
        isFinished = true
        deadline.take()?.cancel()
        resolve(account.result(all, active: active))
    }
}

/// How the connections of a listener fare that is drained, on all its loops. Any thread.
final class DrainCounters: Sendable {
    private let hasBegun = Atomic(false)
    private let idle = Atomic(0)
    /// Of the idle ones and of those aborted, how many are still there.
    private let leaving = Atomic(0)
    /// Those that were cut off.
    private let lost = Atomic(0)

    func begin() { hasBegun.store(true, ordering: .relaxed) }

    /// One is idle and is being closed.
    func countIdle() {
        idle.add(1, ordering: .relaxed)
        countLeaving()
    }

    /// One is being closed, or aborted.
    func countLeaving() { leaving.add(1, ordering: .relaxed) }

    /// One of these is no more.
    func countLeft() { leaving.subtract(1, ordering: .relaxed) }

    /// One has ended with its loop.
    func countLost() {
        if hasBegun.load(ordering: .relaxed) { lost.add(1, ordering: .relaxed) }
    }

    /// Of `all` that there were; `active` are there still, and those that are not leaving will be aborted. What happens on
    /// other threads in this moment falls to one side or the other.
    func result(_ all: Int, active: Int) -> DrainResult {
        var result = DrainResult()
        result.aborted = lost.load(ordering: .relaxed) + max(active - leaving.load(ordering: .relaxed), 0)
        result.idle = idle.load(ordering: .relaxed)
        result.finished = max(all - result.idle - result.aborted, 0)
        return result
    }
}
