import CLinux
import Synchronization

// Work that other threads do for a loop, a pool's jobs or async tasks, counted so that `run()` does not end before it.

extension EventLoop.Remote {
    /// Work begins elsewhere whose outcome this loop waits for: from now on it is alive, until `endExternalWork` has been
    /// called as often. Any thread.
    package func beginExternalWork() { loop.externalWork.add(1, ordering: .relaxed) }

    /// A handler of this loop's thread has been given to a dispatcher that may run it or not: it does not keep the loop alive,
    /// but the loop may hope for it. Any thread.
    package func beginDispatchedJob() { loop.dispatchedJobs.add(1, ordering: .relaxed) }

    /// What that handler was for has settled. Any thread, and also after the loop has ended.
    package func endDispatchedJob() { loop.dispatchedJobs.subtract(1, ordering: .relaxed) }

    /// That work has ended, and its outcome has been posted to the loop if it concerns it: first settle, then call this. A
    /// loop that waits is woken, to see that there is nothing left. Any thread, and also after the loop has ended.
    package func endExternalWork() {
        let left = loop.externalWork.subtract(1, ordering: .acquiringAndReleasing).newValue
        assert(left >= 0, "outside work has ended that had not begun")
        guard left == 0, clinux_get_current_loop() != Unmanaged.passUnretained(loop).toOpaque() else { return }
        // One at a time: nobody may ever drive this loop.
        guard !loop.isWakeJobPosted.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let nudge = Unmanaged<Job>.passRetained(WakeJob(loop))
        if !loop.post(nudge) { nudge.release() }
    }
}

extension EventLoop {
    /// The loop that is to count the work which this thread gives out: this one, or that for which it works itself.
    package var loopToNotify: Remote { requestingLoop ?? remote }

    /// Runs `body`, a job of a pool on whose thread this loop is, which is work for `home`.
    /// - Returns: whether it has ended. Otherwise it has left something on this loop; `home` is told when what is ready has run,
    ///   and the rest has been let go.
    package func work(for home: Remote, _ body: () -> Void) -> Bool {
        requestingLoop = home
        body()
        if hasNoReadyJobs && !hasWaiters { requestingLoop = nil }
        return requestingLoop == nil
    }

    /// Whether others work too for whom the job works that this thread is at: it may have given that work out itself.
    var requestingLoopAwaitsOthers: Bool {
        // One is the job.
        guard let requestingLoop else { return false }
        return requestingLoop.loop.externalWork.load(ordering: .acquiring) > 1
    }

    /// Runs ready jobs, and those that they make ready, until there are none.
    func endJob() {
        while !hasNoReadyJobs { runThoseReady() }
    }

    /// Of a job that had left something: nothing of it is left.
    func notifyRequestingLoop() {
        let home = requestingLoop.take()
        home?.endExternalWork()
    }

    private var hasNoReadyJobs: Bool { ready.isEmpty && mailbox.isEmpty }

    /// Whether other threads work for this loop.
    var awaitsExternalWork: Bool { externalWork.load(ordering: .acquiring) > 0 }
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
    override func run() { _ = loop.isWakeJobPosted.exchange(false, ordering: .acquiringAndReleasing) }

    override var isReportedUndelivered: Bool { false }
}
