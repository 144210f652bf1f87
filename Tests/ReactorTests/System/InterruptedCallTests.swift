import CLinux

/// System calls interrupted by a signal: no caller notices.
struct InterruptedCallTests {
    /// Fails with `EINTR` a number of times, then makes the real call.
    private final class Interruptions {
        var left: Int

        init(_ count: Int) { left = count }

        func pass(_ call: () -> Int) -> Int {
            guard left > 0 else { return call() }
            left -= 1
            return -Int(EINTR)
        }
    }

    @Test func everyCallOfALoopIsRepeatedUntilItSucceeds() throws {
        let real = Syscalls()
        var syscalls = real
        let each = (0..<5).map { _ in Interruptions(3) }
        syscalls.epollCreate = { each[0].pass { real.epollCreate() } }
        syscalls.eventCreate = { each[1].pass { real.eventCreate() } }
        syscalls.timerCreate = { each[2].pass { real.timerCreate() } }
        syscalls.timerSet = { fd, deadline in each[3].pass { real.timerSet(fd, deadline) } }
        syscalls.epollControl = { epoll, operation, fd, event in
            each[4].pass { real.epollControl(epoll, operation, fd, event) }
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            let pipe = Ends.pipe()
            var fired = false
            let watch = try loop.watch(pipe.near, for: .reading) { _ in }
            loop.schedule(after: .milliseconds(1)) {
                fired = true
                watch.cancel()
            }
            try loop.run()
            expect(fired)
            expectEqual(each.map(\.left), [0, 0, 0, 0, 0])
            expectEqual(loop.metrics.systemCalls[.epollCreate], 4, "each try counts")
        }
    }

    @Test func anInterruptedWaitIsAnEmptyTurn() throws {
        let real = Syscalls()
        var syscalls = real
        let interruptions = Interruptions(10)
        syscalls.epollWait = { epoll, events, count, timeout in
            interruptions.pass { real.epollWait(epoll, events, count, timeout) }
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            let deadline = loop.now.advanced(by: .milliseconds(2))
            var firedAt: LoopInstant?
            loop.schedule(at: deadline) { firedAt = loop.now }
            try loop.run()
            expect(firedAt! >= deadline)
            expectEqual(interruptions.left, 0)
            expect(loop.metrics.turns <= 13)
        }
    }

    @Test func mailThatComesWithTheInterruptionIsNotLost() throws {
        let real = Syscalls()
        var syscalls = real
        var remote: LoopRemote?
        let received = Counter()
        syscalls.epollWait = { epoll, events, count, timeout in
            guard timeout < 0, let sender = remote else { return real.epollWait(epoll, events, count, timeout) }
            remote = nil
            _ = TestThread.run { sender.submit { received.add() } }
            return -Int(EINTR)
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            remote = loop.remote
            try loop.drive { received.value == 1 }
            expectEqual(loop.metrics.turns, 1)
        }
    }

    @Test func closeIsNotRepeated() throws {
        let real = Syscalls()
        var syscalls = real
        var closed: [CInt] = []
        syscalls.close = {
            closed.append($0)
            _ = real.close($0)
            return -Int(EINTR)
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            _ = try loop.fileDescriptor
        }
        // epoll, eventfd, timerfd
        expectEqual(closed.count, 3)
        expectEqual(Set(closed).count, 3)
    }
}
