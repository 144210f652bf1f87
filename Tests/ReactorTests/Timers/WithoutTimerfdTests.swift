/// A process that has no descriptors left, or may not create a timerfd, still needs its timers.
struct WithoutTimerfdTests {
    @Test(arguments: [EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM, EACCES, ENODEV, EINVAL])
    func timersFireByTheTimeoutOfTheWait(_ code: CInt) throws {
        var syscalls = Syscalls()
        syscalls.timerCreate = { -Int(code) }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            let due = loop.now.advanced(by: .milliseconds(5))
            var fired: LoopInstant?
            loop.schedule(at: due) { fired = loop.now }
            try loop.run()
            #expect(try #require(fired) >= due)
            expectEqual(loop.metrics.systemCalls[.timerSet], nil)
            expect(loop.metrics.turns <= 3)
        }
    }

    @Test(arguments: [ENOMEM, ENOSPC, EPERM])
    func soTheyDoIfItCannotBeRegistered(_ code: CInt) throws {
        let ledger = Ledger()
        var syscalls = ledger.table
        var timers: Set<CInt> = []
        syscalls.timerCreate = { [real = syscalls.timerCreate] in
            let fd = real()
            timers.insert(CInt(fd))
            return fd
        }
        syscalls.epollControl = { [real = syscalls.epollControl] in
            timers.contains($2) ? -Int(code) : real($0, $1, $2, $3)
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            let due = loop.now.advanced(by: .milliseconds(5))
            var fired: LoopInstant?
            loop.schedule(at: due) { fired = loop.now }
            try loop.run()
            #expect(try #require(fired) >= due)
            expect(!timers.isEmpty && ledger.open.isDisjoint(with: timers))
            expect(loop.metrics.turns <= 3)
        }
    }

    @Test(arguments: [ENOMEM, ECANCELED, EPERM, ENOSYS]) func soTheyDoIfItCannotBeArmed(_ code: CInt) throws {
        var syscalls = Syscalls()
        syscalls.timerSet = { _, _ in -Int(code) }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            let due = loop.now.advanced(by: .milliseconds(5))
            var fired: LoopInstant?
            loop.schedule(at: due) { fired = loop.now }
            try loop.run()
            #expect(try #require(fired) >= due)
            expect(loop.metrics.turns <= 3)
        }
    }

    /// A permanent refusal is not retried before each wait.
    @Test(arguments: [ENOSYS, EPERM]) func aRefusedTimerfdIsAskedForOnce(_ code: CInt) throws {
        var syscalls = Syscalls()
        syscalls.timerCreate = { -Int(code) }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            for _ in 0..<5 {
                loop.schedule(after: .milliseconds(1)) {}
                try loop.run()
            }
            expectEqual(loop.metrics.systemCalls[.timerCreate], 1)
        }
    }

    /// Other code has closed the timerfd.
    @Test(arguments: [EBADF, EINVAL]) func aTimerfdThatIsNoneIsReported(_ code: CInt) {
        var syscalls = Syscalls()
        syscalls.timerSet = { _, _ in -Int(code) }
        EventLoop.withLoop(syscalls: syscalls) { loop in
            loop.schedule(after: .milliseconds(1)) {}
            #expect(throws: SystemError(.timerSet, code)) { try loop.run() }
        }
    }
}
