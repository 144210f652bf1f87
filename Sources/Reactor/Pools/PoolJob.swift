/// A job for the threads of a pool. While it waits for one, it can be withdrawn.
// @unchecked: `progress` and `body` are accessed under the lock of the pool that has the job, or by the one thread that
// has taken it from there.
package final class PoolJob: Job, @unchecked Sendable {
    /// Where a job is: `new`, then in a pool's queue, and then taken by a thread. A withdrawn one stays in the queue as
    /// a tombstone, without its body, until a thread comes past it or the queue is swept.
    enum Progress { case new, queued, taken, withdrawn }

    var progress = Progress.new
    var body: (() -> Void)?

    package init(_ body: @escaping () -> Void) {
        self.body = body
        super.init()
    }

    package override func run() { body.take()?() }
}
