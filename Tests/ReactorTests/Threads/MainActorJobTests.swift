import CLinux
import XCTest

/// Code of the main actor together with the main thread's loop. (In XCTest, since it needs the main thread.)
final class MainActorJobTests: XCTestCase {
    // In the main actor, since Swift 6.2 lets no `nonisolated(unsafe)` variable into its tasks.
    @MainActor private static var lines: [String] = []
    @MainActor private static var hold: EventLoop.Hold?
    @MainActor private static var isOver = false

    @MainActor private static func note(_ line: String) {
        MainActor.preconditionIsolated()
        XCTAssertEqual(getpid(), clinux_gettid(), "the main thread")
        lines.append(line)
    }

    override func setUp() { MainActor.assumeIsolated { Self.lines = [] } }

    private var lines: [String] { MainActor.assumeIsolated { Self.lines } }

    func testTheyRunAlthoughTheLoopHasNothingElseToDo() throws {
        func run(on loop: EventLoop) throws {
            Task { @MainActor in
                Self.note("one")
                Task { @MainActor in Self.note("two") }
            }
            try loop.run()
        }
        try run(on: .current)
        for clock in [nil, VirtualClock()] { try EventLoop.withLoop(clock: clock, run) }
        XCTAssertEqual(lines, ["one", "two", "one", "two", "one", "two"])
    }

    func testTheyWakeALoopThatWaits() throws {
        let loop = EventLoop.current
        MainActor.assumeIsolated { Self.hold = EventLoop.current.hold() }
        loop.schedule(after: .milliseconds(1)) {
            Task.detached {
                await MainActor.run {
                    Self.note("from elsewhere")
                    Self.hold?.cancel()
                }
            }
        }
        try loop.run()
        XCTAssertEqual(lines, ["from elsewhere"])
    }

    func testAChainOfThemDoesNotHoldTheLoop() throws {
        let loop = EventLoop.current
        MainActor.assumeIsolated { Self.isOver = false }
        @MainActor func again() {
            Self.note("again")
            if !Self.isOver { Task { @MainActor in again() } }
        }
        Task { @MainActor in again() }
        loop.schedule(after: .milliseconds(5)) { MainActor.assumeIsolated { Self.isOver = true } }
        try loop.run()
        XCTAssertGreaterThan(lines.count, 1)
    }

    func testABodyOfTheMainActorRunsOnTheLoop() throws {
        let sum = try EventLoop.current.run { @MainActor in
            Self.note("begin")
            await Task.yield()
            Self.note("end")
            return 42
        }
        XCTAssertEqual(sum, 42)
        XCTAssertEqual(lines, ["begin", "end"])
    }

    func testABodyInsideAJobOfTheMainActorIsRefused() throws {
        @MainActor func nest() {
            do { try EventLoop.current.run { Self.note("it began") } } catch { Self.note("refused") }
        }
        Task { @MainActor in nest() }
        try EventLoop.current.run()
        XCTAssertEqual(lines, ["refused"])
    }

    func testOtherThreadsLoopsLeaveThemAlone() throws {
        let worker = try EventLoop.spawn()
        Task { @MainActor in Self.note("main") }
        let turns = Counter()
        for _ in 0..<10 { worker.submit { turns.add() } }
        worker.stop()
        worker.join()
        XCTAssertEqual(turns.value, 10)
        XCTAssertEqual(lines, [])
        try EventLoop.current.run()
        XCTAssertEqual(lines, ["main"])
    }

    func testAForkedChildLeavesThemToItsParent() throws {
        Task { @MainActor in Self.note("parent") }
        let isLeft = isTrueInForkedChild {
            try? EventLoop.withLoop { try $0.run() }
            return lines.isEmpty
        }
        XCTAssertTrue(isLeft)
        try EventLoop.current.run()
        XCTAssertEqual(lines, ["parent"])
    }

    func testDrivingAnAsyncMainIsForTheMainThread() {
        let error = TestThread.run { refusal { try EventLoop.driveAsyncMain() } }
        XCTAssertEqual(error?.description.contains("not the main thread"), true)
    }
}
