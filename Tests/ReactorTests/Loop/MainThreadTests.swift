import XCTest

/// Tests that need the process's real main thread: its own loop, and fork(2), after which only the calling thread lives.
final class MainThreadTests: XCTestCase {
    func testTheMainLoopIsTheMainThreadsOwnAndTakesMailBeforeItIsFirstDriven() throws {
        let received = Counter()
        let isAccepted = TestThread.run {
            EventLoop.main.submit { if EventLoop.current.remote == EventLoop.main { received.add() } }
        }
        XCTAssertTrue(isAccepted)
        XCTAssertEqual(received.value, 0)
        try EventLoop.current.run()
        XCTAssertEqual(received.value, 1)
    }

    func testAForkedChildAddsNothingToTheParentsEpoll() throws {
        try EventLoop.withLoop { loop in
            let pipe = Ends.pipe()
            let watch = try loop.watch(pipe.near, for: .reading) { _ in take(from: pipe.near) }
            let isKept = isTrueInForkedChild {
                let calls: [() throws -> Void] = [
                    { _ = try loop.onSignal(SIGUSR1) {} }, { _ = try loop.fileDescriptor },
                    { _ = try loop.watch(pipe.far, for: .writing) { _ in } },
                    { _ = try loop.spawn(SpawnRequest("/bin/true")) },
                ]
                let areRefused = calls.allSatisfy { isRefused(.epollControl, $0) }
                // Cancelling a handle does not count as using the loop.
                watch.cancel()
                return areRefused && isRefused(.epollWait) { try loop.turn(.poll) }
            }
            XCTAssertTrue(isKept)
            put(into: pipe.far)
            try loop.turn(.poll)
            XCTAssertEqual(take(from: pipe.near), -Int(EAGAIN), "the parent's watch still stands")
            watch.cancel()
        }
    }

    private func isRefused(_ call: SystemCall, _ body: () throws -> Void) -> Bool {
        failure(body) as? SystemError == SystemError(call, EPERM)
    }

    /// Neither by mail nor by a signal to the child alone.
    func testAForkedChildDoesNotWakeTheParent() throws {
        try EventLoop.withLoop { loop in
            var signals = 0
            let watch = try loop.onSignal(SIGUSR1) { signals += 1 }
            // Between turns the mailbox of an embedded loop is parked.
            let fd = try loop.fileDescriptor
            try loop.turn(.poll)
            XCTAssertFalse(isReadable(fd))
            let hasEnded = isTrueInForkedChild {
                // It would end the child, which has the action from before the watch.
                signal(SIGUSR1, SIG_IGN)
                loop.remote.submit {}
                raise(SIGUSR1)
                return true
            }
            XCTAssertTrue(hasEnded)
            XCTAssertFalse(isReadable(fd))
            raise(SIGUSR1)
            XCTAssertTrue(isReadable(fd))
            try loop.turn(.poll)
            XCTAssertEqual(signals, 1)
            watch.cancel()
        }
    }

    /// The end of the parent's loop counts the wake-ups that other threads have written: the child must not read them.
    func testAForkedChildThatEndsTheLoopLeavesTheParentsWakeUps() throws {
        let child = try EventLoop.withLoop { loop in
            // Between turns the mailbox of an embedded loop is parked.
            _ = try loop.fileDescriptor
            try loop.turn(.poll)
            let remote = loop.remote
            TestThread { remote.submit {} }.join()
            try loop.turn(.poll)
            XCTAssertGreaterThan(loop.metrics.wakeups, 0)
            let child = fork()
            if child == 0 { alarm(20) } else { XCTAssertEqual(status(of: child), 42 << 8) }
            return child
        }
        // The child's loop has ended too. The test is that the parent gets here.
        if child == 0 { _exit(42) }
    }

    /// No call of a clean-up reaches anything that the child shares with its parent.
    func testCallsThatWouldReachTheParentAreRefusedInAForkedChild() throws {
        let kernel = CountingSyscalls()
        let folder = Folder()
        let path = folder["file"]
        Glibc.close(creat(path, 0o600))
        let ends = Ends.sockets()
        let timer = CInt(kernel.timerCreate())
        let parent = getpid()
        XCTAssertFalse(kernel.isForked)
        let isRefused = isTrueInForkedChild {
            let calls: [() -> Int] = [
                { kernel.shutdown(ends.near, CInt(SHUT_RDWR)) }, { kernel.unlink(path) },
                { kernel.setSocketOption(ends.near, SOL_SOCKET, SO_KEEPALIVE, CInt(1)) },
                { kernel.timerSet(timer, timespec(tv_sec: 1, tv_nsec: 0)) }, { kernel.kill(-1, parent, 0) },
                { kernel.socket(AF_INET, CInt(SOCK_STREAM.rawValue)) },
            ]
            return kernel.isForked && calls.allSatisfy { $0() == -Int(EPERM) }
        }
        XCTAssertTrue(isRefused)
        XCTAssertTrue(folder.has("file"))
        XCTAssertEqual(send(ends.far, "x", 1, CInt(MSG_NOSIGNAL)), 1)
        Glibc.close(timer)
    }

    func testAForkedChildHasNoneOfAPoolsThreads() throws {
        var pool: ThreadPool? = try ThreadPool(name: "parental", threads: 1)
        let latch = Gate()
        try pool?.block(by: latch)
        let hasNone = isTrueInForkedChild {
            let error = refusal { try pool?.dispatch {} }
            pool?.shutDown()
            let figures = pool?.figures
            pool = nil
            return error == .poolIsForked(name: "parental") && figures == [0, 0, 0, 0]
        }
        XCTAssertTrue(hasNone)
        latch.open()
        pool?.shutDown()
    }

    /// Before there is a thread for such tasks, and after, when that thread is missing in the child.
    func testAForkedChildRunsTasksOfItsOwnEndedLoopsOnly() throws {
        try XCTSkipIf(isSanitized, "the thread sanitizer allows no new thread in a forked child")
        for _ in 0..<2 {
            let ran = Counter()
            var threads = 0
            let (child, executor) = EventLoop.withLoop { loop in
                let executor = loop.remote
                Task(executorPreference: executor) { ran.add() }
                XCTAssertEqual(loop.metrics.readyJobs, 1)
                let child = fork()
                if child == 0 {
                    alarm(20)
                    threads = Folder.names(in: "/proc/self/task").count
                }
                return (child, executor)
            }
            if child == 0 {
                // The loop has ended in this process too, with everything that it left behind.
                Task(executorPreference: executor) { ran.add(10) }
                let isAlone = Folder.names(in: "/proc/self/task").count == threads
                let own = EventLoop.withLoop { $0.remote }
                Task(executorPreference: own) { ran.add() }
                spin { ran.value > 0 }
                _exit(isAlone && ran.value == 1 ? 42 : 2)
            }
            XCTAssertEqual(status(of: child), 42 << 8)
            spin { ran.value == 1 }
        }
    }
}
