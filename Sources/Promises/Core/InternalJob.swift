import Reactor

/// A job of the library's own, which calls a closure. It is no handler: a loop that ends before it has run does not report it,
/// since the handlers that it would have served are reported themselves.
final class InternalJob: Job {
    private let body: () -> Void

    init(_ body: @escaping () -> Void) {
        self.body = body
        super.init()
    }

    /// Calls `body` now; or, if this is called inside such a job of this thread, after that.
    static func runInline(_ body: @escaping () -> Void) {
        EventLoop.ofCurrentThread.runInline(.passRetained(InternalJob(body)))
    }

    override func run() { body() }

    override var isReportedUndelivered: Bool { false }
}
