import CLinux

/// Descriptors closed before their watches are cancelled, while a copy stays open: the kernel keeps the registration,
/// under a number by which it can no longer be removed.
struct StaleRegistrationTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    /// In real time, since the loop's own descriptors move too.
    @Test(.inRealTime) func aWatchOfAClosedDescriptorEndsAndTheLoopStillHearsTheRest() throws {
        let ledger = Ledger()
        try EventLoop.withLoop(syscalls: ledger.table) { loop in
            let (pipe, other) = (Ends.pipe(), Ends.pipe())
            let copy = dup(pipe.near)
            defer { close(copy) }
            let tally = Tally()
            var (calls, others) = (0, 0)
            let watch = try loop.watch(other.near, for: .reading) { _ in
                others += 1
                take(from: other.near)
            }
            do {
                let body = tally.bound { calls += 1 }
                _ = try loop.watch(pipe.near, for: .reading) { _ in body() }
            }
            pipe.closeNear()
            put(into: pipe.far)
            for _ in 0..<1100 { try loop.turn(.poll) }
            expect(calls <= 1024)
            expectEqual(tally.alive, 0)
            let events = loop.metrics.events
            for _ in 0..<20 { try loop.turn(.poll) }
            expect(loop.metrics.events <= events + 1, "the loop wakes up for nothing")

            put(into: other.far)
            try loop.drive { others == 1 }
            var fired = false
            loop.schedule(after: .milliseconds(1)) { fired = true }
            try loop.drive { fired }
            let (remote, received) = (loop.remote, Counter())
            let helper = TestThread { remote.submit { received.add() } }
            try loop.drive { received.value == 1 }
            helper.join()
            watch.cancel()
            expect(!loop.isAlive)
        }
        expect(ledger.open.isEmpty)
    }

    /// The kernel refuses a paused registration because the descriptor has been closed. The handler is notified and
    /// reuses the number for another file.
    @Test(.inLoop) func aHandlerOfAClosedDescriptorMayWatchItsNumberAgain() throws {
        var table = Syscalls()
        let real = table
        var refused: CInt = -1
        table.epollControl = { epoll, operation, fd, event in
            fd == refused ? -Int(EBADF) : real.epollControl(epoll, operation, fd, event)
        }
        try EventLoop.withLoop(clock: clock, syscalls: table) { loop in
            let (old, new) = (Ends.pipe(), Ends.pipe())
            let number = old.near
            var (oldCalls, newCalls) = (0, 0)
            var next: EventLoop.Watch?
            let first = try loop.watch(number, for: .reading) { _ in
                oldCalls += 1
                refused = -1
                // Closes and reopens the number atomically, so that no other thread can take it.
                dup2(new.near, number)
                next = try! loop.watch(number, for: .reading) { _ in
                    newCalls += 1
                    take(from: number)
                }
            }
            for _ in 0..<256 { loop.noteSpuriousReadiness(of: number, progress: 0, SystemError(.read, EAGAIN)) }
            refused = number
            try loop.turn(.upTo(.milliseconds(100)))
            expect(oldCalls == 1 && !first.isActive && next?.isActive == true)
            put(into: new.far)
            try loop.turn(.poll)
            expectEqual(newCalls, 1)
            next?.cancel()
            expect(!loop.isAlive)
        }
    }

    /// Its number belongs to another file when it is watched again.
    @Test(.inLoop) func aNumberThatIsWatchedAnewHearsOfItsOwnFileOnly() throws {
        let (old, new) = (Ends.pipe(), Ends.pipe())
        let number = old.near
        let copy = dup(number)
        defer { close(copy) }
        _ = try loop.watch(number, for: .reading) { _ in Issue.record("its descriptor is closed") }
        // Atomically, so that no other thread can take it.
        dup2(new.near, number)
        var calls = 0
        let watch = try loop.watch(number, for: .reading) { _ in
            calls += 1
            take(from: number)
        }
        put(into: old.far)
        for _ in 0..<5 { try loop.turn(.poll) }
        expectEqual(calls, 0)
        let events = loop.metrics.events
        for _ in 0..<5 { try loop.turn(.poll) }
        expectEqual(loop.metrics.events, events, "the loop wakes up for nothing")
        put(into: new.far)
        try loop.turn(.poll)
        expectEqual(calls, 1)
        watch.cancel()
        expect(!loop.isAlive)
    }

    /// The same file comes back to its number after the kernel could not remove its registration.
    @Test(.inLoop) func aRegistrationThatWasOutOfReachIsTakenOver() throws {
        let (pipe, other) = (Ends.pipe(), Ends.pipe())
        let number = pipe.near
        let copy = dup(number)
        defer { close(copy) }
        let first = try loop.watch(number, for: .reading) { _ in Issue.record("cancelled") }
        dup2(other.near, number)
        first.cancel()
        dup2(copy, number)
        var calls = 0
        let second = try loop.watch(number, for: .reading) { _ in
            calls += 1
            take(from: number)
        }
        put(into: pipe.far)
        for _ in 0..<3 { try loop.turn(.poll) }
        expectEqual(calls, 1)
        second.cancel()
        expect(!loop.isAlive)
    }

    /// Without a descriptor for it the loop cannot recover now, and must not end either.
    @Test(.inLoop) func withoutADescriptorForTheCureTheLoopGoesOn() throws {
        let ledger = Ledger()
        var syscalls = ledger.table
        var isFull = false
        syscalls.epollCreate = { [real = syscalls.epollCreate] in isFull ? -Int(EMFILE) : real() }
        try EventLoop.withLoop(clock: clock, syscalls: syscalls) { loop in
            let pipe = Ends.pipe()
            let copy = dup(pipe.near)
            defer { close(copy) }
            _ = try loop.watch(pipe.near, for: .reading) { _ in }
            isFull = true
            pipe.closeNear()
            put(into: pipe.far)
            for _ in 0..<1200 { try loop.turn(.poll) }
            expectEqual(loop.metrics.systemCalls[.epollCreate], 2)
            isFull = false
            for _ in 0..<70_000 { try loop.turn(.poll) }
            let events = loop.metrics.events
            for _ in 0..<5 { try loop.turn(.poll) }
            expectEqual(loop.metrics.events, events)
        }
        expect(ledger.open.isEmpty)
    }
}
