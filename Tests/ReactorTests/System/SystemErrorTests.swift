import CLinux

/// Errors of the kernel: their texts, and the state after one.
struct SystemErrorTests {
    @Test func theyNameTheCallTheSubjectAndTheCode() {
        let error = SystemError(.bind, EACCES, detail: "127.0.0.1:80")
        expectEqual(error.description, "bind 127.0.0.1:80: Permission denied (EACCES)")
        expectEqual(SystemError(.timerSet, EINVAL).description, "timerfd_settime: Invalid argument (EINVAL)")
        expect(SystemError(.send, 9999).description.hasSuffix("(errno 9999)"))
        // 41 and 58 are aliases of other numbers.
        for code in CInt(1)...133 where code != 41 && code != 58 {
            let text = SystemError(.open, code).description
            expect(!text.contains("errno"), text)
        }
        expectEqual(SystemError(.spawn, E2BIG).description, "posix_spawn: Argument list too long (E2BIG)")
    }

    @Test func theyAreEqualWhenCallAndCodeAre() {
        expectEqual(SystemError(.bind, EACCES, detail: "one"), SystemError(.bind, EACCES, detail: "other"))
        expect(SystemError(.bind, EACCES) != SystemError(.listen, EACCES))
        expect(SystemError(.bind, EACCES) != SystemError(.bind, EADDRINUSE))
        let (first, second) = (SystemError(.bind, EACCES, detail: "one"), SystemError(.bind, EACCES))
        expectEqual(Set([first, second, SystemError(.bind, EPERM)]).count, 2)
    }

    /// Makes each call of a loop that uses everything fail once, and expects the loop to work afterwards.
    @Test(arguments: [
        (SystemCall.epollCreate, EMFILE), (.eventCreate, ENFILE), (.timerSet, EINVAL), (.epollWait, EBADF),
    ])
    func aFailedCallIsThrownOnceAndTheLoopGoesOn(call: SystemCall, code: CInt) throws {
        let ledger = Ledger()
        try EventLoop.withLoop(syscalls: Failures([call: 1], code).table(ledger.table)) { loop in
            var fired = false
            loop.schedule(after: .milliseconds(1)) { fired = true }
            #expect(throws: SystemError(call, code)) { try loop.run() }
            expect(!fired && loop.isAlive)
            try loop.run()
            expect(fired)

            let remote = loop.remote
            let received = Counter()
            let helper = TestThread { remote.submit { received.add() } }
            try loop.drive { received.value == 1 }
            helper.join()
        }
        expect(ledger.open.isEmpty)
    }

    // MARK: Interruptions by a signal (LoopCloseTests has that of close, MailboxTests mail with that of a wait)

    @Test func everyCallOfALoopIsRepeatedUntilItSucceeds() throws {
        let calls = [SystemCall.epollCreate, .eventCreate, .timerCreate, .timerSet, .epollControl]
        let interruptions = Failures(Dictionary(uniqueKeysWithValues: calls.map { ($0, 3) }), EINTR)
        try EventLoop.withLoop(syscalls: interruptions.table()) { loop in
            let pipe = Ends.pipe()
            let watch = try loop.watch(pipe.near, for: .reading) { _ in }
            loop.schedule(after: .milliseconds(1)) { watch.cancel() }
            try loop.run()
            expect(!watch.isActive)
            expect(interruptions.left.values.allSatisfy { $0 == 0 })
            expectEqual(loop.metrics.systemCalls[.epollCreate], 4, "each try counts")
        }
    }

    @Test func anInterruptedWaitIsAnEmptyTurn() throws {
        let interruptions = Failures([.epollWait: 10], EINTR)
        try EventLoop.withLoop(syscalls: interruptions.table()) { loop in
            let deadline = loop.now.advanced(by: .milliseconds(2))
            var firedAt: LoopInstant?
            loop.schedule(at: deadline) { firedAt = loop.now }
            try loop.run()
            expect(firedAt! >= deadline)
            expectEqual(interruptions.left, [.epollWait: 0])
            expect(loop.metrics.turns <= 13)
        }
    }

    // MARK: Refused descriptors

    /// epoll refuses to add the eventfd, or a watched descriptor. (The timerfd, between them, may be refused.)
    @Test(arguments: [0, 2]) func aDescriptorThatEpollDoesNotTakeIsClosedAgain(refused: Int) throws {
        let ledger = Ledger()
        var syscalls = ledger.table
        let control = syscalls.epollControl
        var additions = 0
        syscalls.epollControl = { epoll, operation, fd, event in
            guard operation == EPOLL_CTL_ADD else { return control(epoll, operation, fd, event) }
            defer { additions += 1 }
            return additions == refused ? -Int(EINVAL) : control(epoll, operation, fd, event)
        }
        try EventLoop.withLoop(syscalls: syscalls) { loop in
            let pipe = Ends.pipe()
            var log: [String] = []
            func attempt() throws {
                try loop.watch(pipe.near, for: .reading) { _ in log.append("watch") }.unref()
                loop.schedule(after: .milliseconds(1)) { log.append("timer") }
                try loop.run()
            }
            #expect(throws: SystemError(.epollControl, EINVAL)) { try attempt() }
            expect(ledger.open.count == (refused < 2 ? 0 : 3), "a loop has all of its own, or none")
            try attempt()
            expectEqual(log, ["timer"])
        }
        expect(ledger.open.isEmpty)
    }

    @Test func aWatchThatTheKernelRefusesLeavesTheOneThatStands() throws {
        var syscalls = Syscalls()
        let control = syscalls.epollControl
        syscalls.epollControl = { epoll, operation, fd, event in
            operation == EPOLL_CTL_MOD ? -Int(ENOMEM) : control(epoll, operation, fd, event)
        }
        try EventLoop.withLoop(clock: VirtualClock(), syscalls: syscalls) { loop in
            let sockets = Ends.sockets()
            let tally = Tally()
            var reads = 0
            let reader = try loop.watch(sockets.near, for: .reading) { _ in reads += 1 }
            #expect(throws: SystemError(.epollControl, ENOMEM)) {
                let handler = tally.bound()
                _ = try loop.watch(sockets.near, for: .writing) { _ in handler() }
            }
            expectEqual(tally.alive, 0)
            put(into: sockets.far)
            try loop.turn(.poll)
            expectEqual(reads, 1)
            reader.cancel()
            expect(!loop.isAlive)
        }
    }
}
