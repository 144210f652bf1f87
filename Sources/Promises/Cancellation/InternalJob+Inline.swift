import Reactor

extension InternalJob {
    /// Calls `body` now; or, if this is called inside such a job of this thread, after that.
    static func runInline(_ body: @escaping () -> Void) {
        EventLoop.ofCurrentThread.runInline(.passRetained(InternalJob(body)))
    }
}
