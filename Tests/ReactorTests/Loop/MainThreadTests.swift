import Synchronization
import XCTest

/// Tests that need the process's real main thread: its own loop, signals that the kernel sends there, and fork(2),
/// after which only the calling thread lives.
final class MainThreadTests: XCTestCase {
    private static let alarms = Atomic<Int>(0)

    func testTheMainLoopIsTheMainThreadsOwnAndTakesMailBeforeItIsFirstDriven() throws {
        let received = Counter()
        XCTAssertTrue(TestThread.run { EventLoop.main.submit { received.add() } })
        XCTAssertEqual(received.value, 0)
        try EventLoop.current.run()
        XCTAssertEqual(received.value, 1)

        let isSame = Counter()
        let address = ObjectIdentifier(EventLoop.current)
        let hold = EventLoop.current.hold()
        nonisolated(unsafe) let release: () -> Void = { hold.cancel() }
        let helper = TestThread {
            EventLoop.main.submit {
                if ObjectIdentifier(EventLoop.current) == address { isSame.add() }
                release()
            }
        }
        try EventLoop.current.run()
        helper.join()
        XCTAssertEqual(isSame.value, 1)
    }

    /// SIGALRM goes to the main thread first, so it interrupts every wait there.
    func testAnAlarmEveryMillisecondWithoutRestartDisturbsNeitherTimersNorEvents() throws {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in MainThreadTests.alarms.add(1, ordering: .relaxed) }
        var previous = sigaction()
        sigaction(SIGALRM, &action, &previous)
        var period = itimerval(
            it_interval: timeval(tv_sec: 0, tv_usec: 1000), it_value: timeval(tv_sec: 0, tv_usec: 1000))
        setitimer(CInt(ITIMER_REAL.rawValue), &period, nil)
        defer {
            period = itimerval()
            setitimer(CInt(ITIMER_REAL.rawValue), &period, nil)
            sigaction(SIGALRM, &previous, nil)
        }

        let real = Syscalls()
        var syscalls = real
        var interruptions = 0
        syscalls.epollWait = { epoll, events, count, timeout in
            let result = real.epollWait(epoll, events, count, timeout)
            if result == -Int(EINTR) { interruptions += 1 }
            return result
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            let sockets = Ends.sockets()
            var echoes = 0
            let server = try loop.watch(sockets.far, for: .reading) { _ in
                let count = take(from: sockets.far)
                if count > 0 { put(count, into: sockets.far) }
            }
            let client = try loop.watch(sockets.near, for: .reading) { _ in
                // Bytes, not events: two pings may arrive as one.
                echoes += take(from: sockets.near)
            }
            var pings = 0
            let pinger = loop.schedule(every: .milliseconds(3)) {
                pings += 1
                put(into: sockets.near)
            }
            let deadline = loop.now.advanced(by: .milliseconds(300))
            var firedAt: LoopInstant?
            loop.schedule(at: deadline) {
                firedAt = loop.now
                pinger.cancel()
            }
            var isOverdue = false
            let watchdog = loop.schedule(after: .seconds(10)) { isOverdue = true }
            while !isOverdue, firedAt == nil || echoes < pings { try loop.turn(.wait) }
            watchdog.cancel()
            XCTAssertFalse(isOverdue)
            XCTAssertGreaterThanOrEqual(firedAt!, deadline)
            XCTAssertLessThan(deadline.duration(to: firedAt!), .seconds(1))
            XCTAssertEqual(echoes, pings)
            XCTAssertGreaterThan(pings, 10)
            server.cancel()
            client.cancel()
        }
        XCTAssertGreaterThan(interruptions, 10, "it was hardly disturbed, so this has shown nothing")
        XCTAssertGreaterThan(Self.alarms.load(ordering: .relaxed), 50)
    }

    /// The number of entries of a directory. Does not throw: in a forked child an error would continue with the tests.
    private func entries(of path: String) -> Int {
        guard let directory = opendir(path) else { fatalError("\(path): errno \(errno)") }
        defer { closedir(directory) }
        var entries = 0
        while readdir(directory) != nil { entries += 1 }
        return entries
    }

    func testAForkedChildAddsNothingToTheParentsEpoll() throws {
        try EventLoop.withLoop { loop in
            let pipe = Ends.pipe()
            let watch = try loop.watch(pipe.near, for: .reading) { _ in take(from: pipe.near) }
            inForkedChild {
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
            put(into: pipe.far)
            try loop.turn(.poll)
            XCTAssertEqual(take(from: pipe.near), -Int(EAGAIN), "the parent's watch still stands")
            watch.cancel()
        }
    }

    /// Runs `body` in a forked child, which must exit successfully.
    private func inForkedChild(line: UInt = #line, _ body: () -> Bool) {
        let child = fork()
        if child == 0 {
            // If anything here waits forever, the parent sees the signal.
            alarm(20)
            _exit(body() ? 42 : 1)
        }
        expectSuccess(of: child, line: line)
    }

    private func expectSuccess(of child: pid_t, line: UInt = #line) {
        var status: CInt = 0
        XCTAssertEqual(waitpid(child, &status, 0), child, line: line)
        XCTAssertEqual(status, 42 << 8, line: line)
    }

    private func isRefused(_ call: SystemCall, _ body: () throws -> Void) -> Bool {
        do { try body() } catch { return error as? SystemError == SystemError(call, EPERM) }
        return false
    }

    /// True if the loop's descriptor is readable.
    private func isReadable(_ fd: CInt) -> Bool {
        var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 1
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
            inForkedChild {
                // It would end the child, which has the action from before the watch.
                signal(SIGUSR1, SIG_IGN)
                loop.remote.submit {}
                raise(SIGUSR1)
                return true
            }
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
            if child == 0 {
                alarm(20)
            } else {
                expectSuccess(of: child)
            }
            return child
        }
        // The child's loop has ended too. The test is that the parent gets here.
        if child == 0 { _exit(42) }
    }

    /// No call of a clean-up reaches anything that the child shares with its parent.
    func testCallsThatWouldReachTheParentAreRefusedInAForkedChild() throws {
        let kernel = CountingSyscalls()
        let path = "/tmp/reactor-fork-\(getpid())"
        Glibc.close(creat(path, 0o600))
        defer { unlink(path) }
        var ends: (CInt, CInt) = (-1, -1)
        withUnsafeMutableBytes(of: &ends) {
            _ = socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, $0.assumingMemoryBound(to: CInt.self).baseAddress!)
        }
        let timer = CInt(kernel.timerCreate())
        let parent = getpid()
        XCTAssertFalse(kernel.isForked)
        inForkedChild {
            let calls: [() -> Int] = [
                { kernel.shutdown(ends.0, CInt(SHUT_RDWR)) }, { kernel.unlink(path) },
                { kernel.setSocketOption(ends.0, SOL_SOCKET, SO_KEEPALIVE, CInt(1)) },
                { kernel.timerSet(timer, timespec(tv_sec: 1, tv_nsec: 0)) }, { kernel.kill(-1, parent, 0) },
                { kernel.socket(AF_INET, CInt(SOCK_STREAM.rawValue)) },
            ]
            return kernel.isForked && calls.allSatisfy { $0() == -Int(EPERM) }
        }
        XCTAssertEqual(access(path, F_OK), 0)
        XCTAssertEqual(send(ends.1, "x", 1, CInt(MSG_NOSIGNAL)), 1)
        for fd in [ends.0, ends.1, timer] { Glibc.close(fd) }
    }

    func testAForkedChildHasNoneOfAPoolsThreads() throws {
        var pool: ThreadPool? = try ThreadPool(name: "parental", threads: 1)
        let latch = Gate()
        try pool?.block(by: latch)
        inForkedChild {
            let error = refusal { try pool?.dispatch {} }
            pool?.shutDown()
            let figures = pool?.figures
            pool = nil
            return error == .poolIsForked(name: "parental") && figures == [0, 0, 0, 0]
        }
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
                    threads = entries(of: "/proc/self/task")
                }
                return (child, executor)
            }
            if child == 0 {
                // The loop has ended in this process too, with everything that it left behind.
                Task(executorPreference: executor) { ran.add(10) }
                let isAlone = entries(of: "/proc/self/task") == threads
                let own = EventLoop.withLoop { $0.remote }
                Task(executorPreference: own) { ran.add() }
                spin { ran.value > 0 }
                _exit(isAlone && ran.value == 1 ? 42 : 2)
            }
            expectSuccess(of: child)
            spin { ran.value == 1 }
        }
    }

    /// Nothing else runs in this process meanwhile, so its descriptors can be counted.
    func testLoopsOfAllKindsLeaveNoDescriptorsBehind() throws {
        _ = EventLoop.current
        let before = entries(of: "/proc/self/fd")
        for _ in 0..<20 {
            try EventLoop.withLoop { loop in
                let pipe = Ends.pipe()
                _ = try loop.watch(pipe.near, for: .reading) { _ in }
                _ = try loop.onSignal(SIGUSR1) {}
                loop.schedule(after: .milliseconds(1)) { loop.stop() }
                try loop.run()
            }
            TestThread {
                _ = try! EventLoop.current.onSignal(SIGUSR2) {}
                try! EventLoop.current.turn(.upTo(.microseconds(1)))
            }.join()
        }
        XCTAssertEqual(entries(of: "/proc/self/fd"), before)
    }
}
