import ReactorLibc
import Synchronization

extension EventLoop {
    /// Runs a Swift Concurrency job here, or elsewhere once the loop has ended. On the loop's thread the job skips the
    /// mailbox, where each `Task.yield` would cost a turn. Any thread.
    func enqueue(_ job: UnownedJob, _ purpose: SwiftJob.Purpose) {
        let node = Unmanaged<Job>.passRetained(SwiftJob(job, purpose, self))
        if isCurrent { return enqueueOwned(node) }
        if !post(node) { node._withUnsafeGuaranteedRef { $0.discardAndRelease() } }
    }
}

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
        if loop.isForked { return }
        // The loop's thread may still use the task's state, so the surrounding loop runs the job.
        if case .boundTask(let executor) = purpose, let next = executor.loop(around: loop) {
            return next.enqueue(job, purpose)
        }
        if !loop.shared.life.hasReportedTask.exchange(true, ordering: .relaxed) {
            LoopEvent.send(.taskOnEndedLoop)
        }
        // Not before the loop's thread has ended the loop, because that thread may use the job's state.
        loop.shared.life.isOver.whenOpen { [job, purpose] in EndedLoopJobs.enqueue { Self.run(job, purpose, nil) }
        }
    }
}
