@testable import PromisesTestSupport

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
}

/// Actors and tasks whose executor is a loop.
@Suite(.serialized, .ownThread) struct ActorOnLoopTests {
    @Test(.inRealTime) func anActorRunsOnItsLoopWhichHangDrives() throws {
        let loop = EventLoop.current
        let resident = Resident(on: loop.remote)
        let count = try hang(
            Promise {
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<200 { group.addTask { await resident.work() } }
                }
                return await resident.count
            })
        expectEqual(count, 200)
        expectEqual(try hang(Promise { await resident.threads }), [pthread_self()])
        expectEqual(try hang(Promise { await resident.overlaps }), 0)
    }

    /// In both forms of an executor that Swift offers.
    @Test(.inRealTime, arguments: [false, true])
    func handlersOfTheLoopMayAssumeItsIsolation(isOrdinary: Bool) throws {
        let loop = EventLoop.current
        let resident = Resident(on: loop.remote, isOrdinary: isOrdinary)
        try hang(Promise { await resident.work() })
        let count = hang(
            after(.milliseconds(1)).map {
                resident.assumeIsolated {
                    $0.work()
                    return $0.count
                }
            })
        expectEqual(count, 2)
    }

    @Test(.inRealTime) func twoActorsOfOneLoopNeedNoHop() throws {
        let loop = EventLoop.current
        let one = Resident(on: loop.remote)
        let other = Resident(on: loop.remote)
        let both = try hang(
            Promise { () -> Int in
                await one.work()
                await other.work()
                return await one.count + other.count
            })
        expectEqual(both, 2)
        expect(loop.remote.isSameExclusiveExecutionContext(other: loop.remote))
        EventLoop.withLoop { expect(!loop.remote.isSameExclusiveExecutionContext(other: $0.remote)) }
    }

    private nonisolated static func thread() async -> pthread_t { threadOfCaller() }

    @Test func afterTheLoopItGoesOnOnAThreadOfItsOwnOneJobAtATime() throws {
        let recorder = LogRecorder(where: { if case .taskOnEndedLoop = $0 { true } else { false } })
        defer { recorder.stop() }
        let resident = EventLoop.withLoop { loop in Resident(on: loop.remote) }
        try EventLoop.withLoop { _ throws in
            let result = try hang(
                Promise {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<200 { group.addTask { await resident.work() } }
                    }
                    return (await resident.count, await resident.overlaps, await resident.threads.count)
                })
            expect(result == (200, 0, 1))
            // Once for 200 tasks and more. Loops that other tests end meanwhile report as well.
            expectEqual(recorder.lines.first, "a task ran on a thread of its own, since its event loop has ended")
            expect(recorder.count < 100)
        }
    }

    @Test func whatALoopLeavesBehindWhenItEndsRunsToo() throws {
        let recorder = LogRecorder(where: { if case .taskOnEndedLoop = $0 { true } else { false } })
        defer { recorder.stop() }
        try EventLoop.withLoop { _ throws in
            let working = EventLoop.withLoop { loop in
                let resident = Resident(on: loop.remote)
                let done = Gate()
                let task = Task.detached {
                    done.open()
                    await resident.work()
                    return await resident.count
                }
                done.wait()
                // Never driven: jobs stay in its mailbox.
                while loop.metrics.readyJobs == 0 { sched_yield() }
                return task
            }
            let count = try hang(Promise { await working.value })
            expectEqual(count, 1)
            // Loops that other tests end meanwhile report as well.
            expect(recorder.count >= 1)
        }
    }
}
