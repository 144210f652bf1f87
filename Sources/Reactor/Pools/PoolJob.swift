/// A job for a pool's threads, which can be withdrawn while queued.
// @unchecked: accesses to `progress` and `body` hold the pool's lock, or are made by the thread that took the job.
package final class PoolJob: Job, @unchecked Sendable {
    /// A withdrawn job stays queued as a tombstone without its body, until a thread takes it or the queue is swept.
    enum Progress { case new, queued, taken, withdrawn }

    var progress = Progress.new
    var body: (() -> Void)?

    package init(_ body: @escaping () -> Void) {
        self.body = body
        super.init()
    }

    package override func run() { body.take()?() }
}
