import CLinux
import Synchronization

// Work that other threads do for a loop, a pool's jobs or async tasks, counted so that `run()` does not end before it.

extension EventLoop.Remote {
    /// Work begins elsewhere whose outcome this loop waits for: from now on it is alive, until `endExternalWork` has been
    /// called as often. Any thread.
    package func beginExternalWork() { loop.shared.work.externalWork.begin() }

    /// A handler of this loop's thread has been given to a dispatcher that may run it or not: it does not keep the loop alive,
    /// but the loop may hope for it. Any thread.
    package func beginDispatchedJob() { loop.shared.work.dispatchedJobs.add(1, ordering: .relaxed) }

    /// What that handler was for has settled. Any thread, and also after the loop has ended.
    package func endDispatchedJob() { loop.shared.work.dispatchedJobs.subtract(1, ordering: .relaxed) }

    /// That work has ended, and its outcome has been posted to the loop if it concerns it: first settle, then call this. A
    /// loop that waits is woken, to see that there is nothing left. Any thread, and also after the loop has ended.
    package func endExternalWork() { if loop.shared.work.externalWork.end() { wake() } }

    /// Makes the loop look again at what it waits for. Any thread, and also after the loop has ended.
    private func wake() {
        guard clinux_get_current_loop() != Unmanaged.passUnretained(loop).toOpaque() else { return }
        // One at a time: it may be that no thread ever drives this loop.
        guard !loop.shared.work.isWakeJobPosted.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let job = Unmanaged<Job>.passRetained(WakeJob(loop))
        if !loop.post(job) { job.release() }
    }
}

extension EventLoop.Remote {
    /// Whether the loop's clock is virtual. Any thread: it never changes.
    package var isVirtual: Bool { loop.clock.isVirtual }

    /// Whether the loop has this address. Any thread.
    package func isRemote(ofLoopAt address: UnsafeMutableRawPointer?) -> Bool {
        address == Unmanaged.passUnretained(loop).toOpaque()
    }

    /// A piece of external work waits for a result of this loop, so the loop's virtual clock may go on. Call it once the wait
    /// can be ended by the result, and not before: the result may come at any time, and the clock must then stand still.
    /// Any thread.
    package func beginWaitingForLoop() { if loop.shared.work.externalWork.beginWaiting() { wake() } }

    /// That wait has ended, and the work goes on: called on the thread that ends it, before the work can go on. If this comes
    /// before `beginWaitingForLoop`, the work counts as busy twice until then. Any thread.
    package func endWaitingForLoop() { loop.shared.work.externalWork.endWaiting() }
}

extension EventLoop {
    /// The loop that is to count the work which this thread gives out: this one, or that for which it works itself.
    package var loopToNotify: Remote { keepAlive.requestingLoop ?? remote }

    /// Runs `body`, a job of a pool on whose thread this loop is, which is work for `home`.
    /// - Returns: whether it has ended. Otherwise it has left something on this loop; `home` is told when what is ready has run,
    ///   and the rest has been let go.
    package func work(for home: Remote, _ body: () -> Void) -> Bool {
        keepAlive.requestingLoop = home
        body()
        if hasNoReadyJobs && !hasWaiters { keepAlive.requestingLoop = nil }
        return keepAlive.requestingLoop == nil
    }

    /// Whether others work too for whom the job works that this thread is at: it may have given that work out itself.
    var requestingLoopAwaitsOthers: Bool {
        // One is the job.
        guard let requestingLoop = keepAlive.requestingLoop else { return false }
        return requestingLoop.loop.shared.work.externalWork.count > 1
    }

    /// Runs ready jobs, and those that they make ready, until there are none.
    func endJob() {
        while !hasNoReadyJobs { runThoseReady() }
    }

    /// Of a job that had left something: nothing of it is left.
    func notifyRequestingLoop() {
        let home = keepAlive.requestingLoop.take()
        home?.endExternalWork()
    }

    private var hasNoReadyJobs: Bool { queues.ready.isEmpty && shared.waker.mailbox.isEmpty }
}

/// That it comes makes the loop look round.
private final class WakeJob: Job {
    // The loop holds it in turn, until it runs it or ends.
    private let loop: EventLoop

    init(_ loop: EventLoop) {
        self.loop = loop
        super.init()
    }

    // Whoever finds that it has been set already is so seen by the loop afterwards.
    override func run() { _ = loop.shared.work.isWakeJobPosted.exchange(false, ordering: .acquiringAndReleasing) }

    override var isReportedUndelivered: Bool { false }
}
