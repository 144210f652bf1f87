import ReactorLibc
import Synchronization

extension EventLoop {
    /// Runs a job of Swift Concurrency on this loop, or elsewhere once the loop has ended. Any thread. On the loop's own
    /// thread the job is ready at once: through the mailbox, a task that yields would cost a turn each time.
    func enqueue(_ job: UnownedJob, _ purpose: SwiftJob.Purpose) {
        let node = Unmanaged<Job>.passRetained(SwiftJob(job, purpose, self))
        if isCurrent { return enqueueOwned(node) }
        if !post(node) { node._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }
}

/// A Swift Concurrency job, wrapped as a job of the loop.
final class SwiftJob: Job {
    enum Purpose {
        case actor(LoopActorExecutor)
        case task(LoopRemote)
        case boundTask(ThreadBoundExecutor)
    }

    private let job: UnownedJob
    private let purpose: Purpose
    private let loop: EventLoop

    init(_ job: UnownedJob, _ purpose: Purpose, _ loop: EventLoop) {
        self.job = job
        self.purpose = purpose
        self.loop = loop
        super.init()
    }

    override func run() { Self.run(job, purpose, loop.ownRemote) }

    static func run(_ job: UnownedJob, _ purpose: Purpose, _ remote: LoopRemote?) {
        switch (purpose, remote) {
        case (.actor(let actors), let remote?):
            job.runSynchronously(
                isolatedTo: actors.asUnownedSerialExecutor(), taskExecutor: remote.asUnownedTaskExecutor())
        case (.actor(let actors), nil): job.runSynchronously(on: actors.asUnownedSerialExecutor())
        case (.task(let tasks), _): job.runSynchronously(on: tasks.asUnownedTaskExecutor())
        case (.boundTask(let tasks), _): job.runSynchronously(on: tasks.asUnownedTaskExecutor())
        }
    }

    // The job still runs, on another thread.
    override var isReportedUndelivered: Bool { false }

    /// The loop has ended, so the job runs elsewhere.
    override func discardAndRelease() {
        rescue()
        super.discardAndRelease()
    }

    private func rescue() {
        // In a forked child the task belongs to the parent.
        if loop.isForked { return }
        // The loop's thread may continue, and use the same state as the task. The surrounding loop then runs the job.
        if case .boundTask(let executor) = purpose, let next = executor.loop(around: loop) {
            return next.enqueue(job, purpose)
        }
        if !loop.shared.life.hasReportedTask.exchange(true, ordering: .relaxed) {
            LoopEvent.send(.taskOnEndedLoop)
        }
        // Not while the loop's own thread is ending it: that thread may use the same state as the job.
        loop.shared.life.isOver.whenOpen { [job, purpose] in EndedLoopJobs.enqueue { Self.run(job, purpose, nil) }
        }
    }
}
