@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

private actor Resident {
    private let executor: LoopRemote
    private let isOrdinary: Bool
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        isOrdinary ? UnownedSerialExecutor(ordinary: executor) : executor.asUnownedSerialExecutor()
    }
    private(set) var count = 0
    private(set) var threads: Set<pthread_t> = []
    private var isInside = false
    private(set) var overlaps = 0

    init(on loop: LoopRemote, isOrdinary: Bool = false) { (executor, self.isOrdinary) = (loop, isOrdinary) }

    func work() {
        if isInside { overlaps += 1 }
        isInside = true
        count += 1
        threads.insert(pthread_self())
        isInside = false
    }

    func run(_ body: @Sendable () -> Void) { body() }

    /// The counts after visits by 200 tasks.
    nonisolated func crowd() async -> (count: Int, overlaps: Int, threads: Set<pthread_t>) {
        await withTaskGroup(of: Void.self) { group in for _ in 0..<200 { group.addTask { await self.work() } } }
        return (await count, await overlaps, await threads)
    }
}

/// Actors whose executor is a loop.
@Suite(.serialized, .ownThread) struct ActorOnLoopTests {
    /// In both forms of an executor that Swift offers. Handlers of the loop may assume the actor's isolation.
    @Test(.inRealTime, arguments: [false, true]) func itRunsOnItsLoopWhichHangDrives(isOrdinary: Bool) throws {
        let home = EventLoop.current.remote
        let resident = Resident(on: home, isOrdinary: isOrdinary)
        expect(try hang(Promise { await resident.crowd() }) == (200, 0, [pthread_self()]))
        hang(after(.milliseconds(1)).done { resident.assumeIsolated { $0.work() } })
        expectEqual(try hang(Promise { await resident.count }), 201)
        expect(home.isSameExclusiveExecutionContext(other: home))
        EventLoop.withLoop { expect(!home.isSameExclusiveExecutionContext(other: $0.remote)) }
    }

    /// The jobs of ended loops run one after the other: had the first not waited, it would have run before the second.
    @Test func aTaskThatIsLeftBehindWaitsUntilTheLoopHasReleasedEverything() throws {
        let order = Shared<[String]>([])
        let ended = EventLoop.withLoop { Resident(on: $0.remote) }
        let task = EventLoop.withLoop { loop in
            let resident = Resident(on: loop.remote)
            let task = Task.detached { await resident.run { order.change { $0.append("task") } } }
            while loop.metrics.readyJobs == 0 { sched_yield() }
            let words = LastWords {
                let hasRun = Gate()
                Task.detached { await ended.run { hasRun.open() } }
                hasRun.wait()
                order.change { $0.append("released") }
            }
            loop.schedule(after: .seconds(1000)) { words.use() }
            return task
        }
        try EventLoop.withLoop { _ throws in try hang(Promise { await task.value }) }
        expectEqual(order.value, ["released", "task"])
    }

    @Test func afterTheLoopItGoesOnOnAThreadOfItsOwnOneJobAtATime() throws {
        let recorder = LogRecorder(where: { if case .taskOnEndedLoop = $0 { true } else { false } })
        defer { recorder.stop() }
        let (resident, leftBehind) = EventLoop.withLoop { loop in
            let resident = Resident(on: loop.remote)
            let task = Task.detached { await resident.work() }
            // Never driven: the job stays in its mailbox.
            while loop.metrics.readyJobs == 0 { sched_yield() }
            return (resident, task)
        }
        try EventLoop.withLoop { _ throws in
            try hang(Promise { await leftBehind.value })
            let result = try hang(Promise { await resident.crowd() })
            expect((result.count, result.overlaps, result.threads.count) == (201, 0, 1))
        }
        // Once for 201 tasks and more. Loops that other tests end meanwhile report as well.
        expectEqual(recorder.lines.first, "a task ran on a thread of its own, since its event loop has ended")
        expect(recorder.count < 100)
    }
}
