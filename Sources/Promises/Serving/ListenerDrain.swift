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
