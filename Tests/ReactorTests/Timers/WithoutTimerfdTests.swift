/// A process that has no descriptors left, or may not create a timerfd, still needs its timers.
struct WithoutTimerfdTests {
    @Test(
        arguments: [EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM, EACCES, ENODEV, EINVAL].map { (SystemCall.timerCreate, $0) }
            + [ENOMEM, ENOSPC, EPERM].map { (.epollControl, $0) }
            + [ENOMEM, ECANCELED, EPERM, ENOSYS].map { (.timerSet, $0) })
    func timersFireByTheTimeoutOfTheWait(refused: SystemCall, code: CInt) throws {
        let ledger = Ledger()
        var syscalls = ledger.table
        var timers: Set<CInt> = []
        let real = syscalls
        syscalls.timerCreate = {
            if refused == .timerCreate { return -Int(code) }
            let fd = real.timerCreate()
            timers.insert(CInt(fd))
            return fd
        }
        syscalls.epollControl = {
            refused == .epollControl && timers.contains($2) ? -Int(code) : real.epollControl($0, $1, $2, $3)
        }
        if refused == .timerSet { syscalls.timerSet = { _, _ in -Int(code) } }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            let due = loop.now.advanced(by: .milliseconds(5))
            var fired: LoopInstant?
            loop.schedule(at: due) { fired = loop.now }
            try loop.run()
            expect(try #require(fired) >= due)
            expect(loop.metrics.turns <= 3)
            expectEqual(timers.isEmpty, refused == .timerCreate)
            if refused != .timerSet { expect(ledger.open.isDisjoint(with: timers)) }
            // Only for want of descriptors or memory is it asked for again.
            let creations = loop.metrics.systemCalls[.timerCreate]
            loop.schedule(after: .milliseconds(1)) {}
            try loop.run()
            let isTemporary = refused != .timerSet && [EMFILE, ENFILE, ENOMEM, ENOSPC].contains(code)
            expectEqual(loop.metrics.systemCalls[.timerCreate] != creations, isTemporary)
        }
    }

    /// Other code has closed the timerfd.
    @Test(arguments: [EBADF, EINVAL]) func aTimerfdThatIsNoneIsReported(_ code: CInt) {
        EventLoop.withLoop(syscalls: Failures([.timerSet: 1], code).table()) { loop in
            loop.schedule(after: .milliseconds(1)) {}
            #expect(throws: SystemError(.timerSet, code)) { try loop.run() }
        }
    }
}
