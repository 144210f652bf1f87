import CLinux

/// Watching descriptors: refused ones, reported events, and two watches of one descriptor.
struct WatchTests {
    private let loop = EventLoop.current
    private var clock: VirtualClock { loop.virtualClock }

    @Test(.inRealTime) func whatCannotBeWatchedIsRefusedAtOnce() throws {
        let tally = Tally()
        func refusal(_ fd: CInt, _ interest: Interest = .reading) -> SystemError? {
            let handler = tally.bound()
            return failure { _ = try loop.watch(fd, for: interest) { _ in handler() } } as? SystemError
        }
        for path in ["/proc/self/exe", "/", "/dev/null"] {
            let fd = open(path, O_RDONLY | O_CLOEXEC)
            defer { close(fd) }
            expectEqual(refusal(fd), SystemError(.epollControl, EPERM), path)
        }
        for fd in [-1, CInt.min, 999_999, CInt.max] {
            expectEqual(refusal(fd), SystemError(.epollControl, EBADF), "\(fd)")
        }
        let pipe = Ends.pipe()
        expectEqual(refusal(pipe.near, []), SystemError(.epollControl, EINVAL))
        expectEqual(tally.alive, 0)
        expect(!loop.isAlive)
    }

    @Test(.inLoop) func readinessIsReportedInEachTurnUntilItIsTaken() throws {
        let sockets = Ends.sockets()
        fill(sockets.near)
        var seen: [Interest] = []
        let watch = try loop.watch(sockets.near, for: [.reading, .writing]) { seen.append($0) }
        try loop.turn(.poll)
        expectEqual(seen, [])
        put(into: sockets.far)
        for _ in 0..<2 { try loop.turn(.poll) }
        while take(from: sockets.far) > 0 {}
        try loop.turn(.poll)
        take(from: sockets.near)
        for _ in 0..<2 { try loop.turn(.poll) }
        expectEqual(seen, [.reading, .reading, [.reading, .writing], .writing, .writing])
        watch.cancel()
    }

    @Test(.inLoop) func aReaderAndAWriterShareOneRegistrationAndASecondReaderIsRefused() throws {
        let sockets = Ends.sockets()
        var log: [String] = []
        let reader = try loop.watch(sockets.near, for: .reading) { log.append("reads \($0 == .reading)") }
        let writer = try loop.watch(sockets.near, for: .writing) { log.append("writes \($0 == .writing)") }
        for interest in [Interest.reading, .writing, [.reading, .writing]] {
            #expect(throws: SystemError(.epollControl, EEXIST)) {
                _ = try loop.watch(sockets.near, for: interest) { _ in log.append("intruder") }
            }
        }
        put(into: sockets.far)
        try loop.turn(.poll)
        expectEqual(log, ["reads true", "writes true"])
        expectEqual(loop.metrics.events, 1)

        writer.cancel()
        try loop.turn(.poll)
        expectEqual(log, ["reads true", "writes true", "reads true"])
        reader.cancel()
        let third = try loop.watch(sockets.near, for: .reading) { _ in log.append("third") }
        reader.cancel()
        try loop.turn(.poll)
        expectEqual(log.last, "third", "a reader may come after a reader has gone, and outlives the old handle")
        third.cancel()
    }

    /// The kernel does not forget that there is room to write, for which nothing waits any more.
    @Test(.inLoop, arguments: [[EPOLL_CTL_MOD], [EPOLL_CTL_DEL], [EPOLL_CTL_MOD, EPOLL_CTL_DEL]])
    func aRegistrationThatCannotBeNarrowedOrRemovedDoesNotSpin(refused: [CInt]) throws {
        var table = Syscalls()
        let real = table
        var refuses = false
        table.epollControl = { refuses && refused.contains($1) ? -Int(ENOSPC) : real.epollControl($0, $1, $2, $3) }
        try EventLoop.withLoop(clock: clock, syscalls: table) { loop in
            let (both, one) = (Ends.sockets(), Ends.sockets())
            var received = 0
            let reader = try loop.watch(both.near, for: .reading) { _ in received += take(from: both.near) }
            let writers = try [both, one].map { try loop.watch($0.near, for: .writing) { _ in } }
            try loop.turn(.poll)
            refuses = true
            for writer in writers { writer.cancel() }
            for _ in 0..<10 { try loop.turn(.upTo(.milliseconds(100))) }
            let before = loop.metrics.events
            for _ in 0..<20 { try loop.turn(.poll) }
            expectEqual(loop.metrics.events, before, "the loop wakes for nothing")
            put(into: both.far)
            try loop.turn(.poll)
            expectEqual(received, 1, "what is waited for is reported")
            reader.cancel()
        }
    }

    /// Nor is there room for the registrations of a new epoll descriptor: the remaining option is to wake seldom.
    @Test(.inLoop) func withoutAnyRegistrationItWakesSeldom() throws {
        let failures = Failures([:], ENOMEM)
        try EventLoop.withLoop(syscalls: failures.table()) { loop in
            let ends = Ends.sockets()
            let writer = try loop.watch(ends.near, for: .writing) { _ in }
            try loop.turn(.poll)
            failures.left[.epollControl] = .max
            writer.cancel()
            let begin = ContinuousClock.now
            for _ in 0..<100 { try loop.turn(.poll) }
            expect(ContinuousClock.now - begin > .milliseconds(40))
        }
    }

    @Test(.inLoop) func aCancelledWatchHasNoRegistrationThatCouldSpinOnAHangUp() throws {
        let sockets = Ends.sockets()
        let watch = try loop.watch(sockets.near, for: .reading) { _ in Issue.record("cancelled") }
        put(into: sockets.far)
        watch.cancel()
        watch.cancel()
        sockets.closeFar()
        for _ in 0..<20 { try loop.turn(.poll) }
        expectEqual(loop.metrics.events, 0)
    }

    @Test(.inLoop) func aPipeWhoseWriterClosesWithoutWritingIsReadToItsEndWithoutSpinning() throws {
        let pipe = Ends.pipe()
        var results: [Int] = []
        var watch: EventLoop.Watch?
        watch = try loop.watch(pipe.near, for: .reading) { ready in
            expectEqual(ready, .reading)
            results.append(take(from: pipe.near))
            watch?.cancel()
        }
        pipe.closeFar()
        try loop.run()
        expectEqual(results, [0])
        expectEqual(loop.metrics.turns, 1)
    }

    @Test(.inLoop) func cancellingInsideItsOwnCallReleasesTheHandlerAfterIt() throws {
        let pipe = Ends.pipe()
        let tally = Tally()
        var watch: EventLoop.Watch?
        var livingAfterCancel = -1
        do {
            let handler = tally.bound {
                watch?.cancel()
                livingAfterCancel = tally.alive
            }
            watch = try loop.watch(pipe.near, for: .reading) { _ in handler() }
        }
        put(into: pipe.far)
        try loop.run()
        expectEqual(livingAfterCancel, 1)
        expectEqual(tally.alive, 0)
    }

    @Test(.inLoop, .enabled(if: mayHaveDescriptors(2000), "the hard limit of descriptors is below 2,000"))
    func manyDescriptorsAreAllServedFairly() throws {
        let fds = (0..<300).map { _ in eventfd(1, CInt(EFD_CLOEXEC | EFD_NONBLOCK)) }
        defer { for fd in fds { close(fd) } }
        var hits = Array(repeating: 0, count: fds.count)
        let watches = try fds.enumerated().map { index, fd in
            try loop.watch(fd, for: .reading) { _ in hits[index] += 1 }
        }
        for _ in 0..<8 { try loop.turn(.poll) }
        // More than one batch of events, none consumed: the kernel rotates through all of them.
        expect(hits.min()! >= 3)
        expect(hits.max()! <= 8)
        for watch in watches { watch.cancel() }
    }
}

/// Descriptors that the loop cannot register, and their handlers.
struct UnregisteredHandlerTests {
    private final class Handler: ReadinessHandler {
        var calls: [Interest] = []
        var whenReleased: () -> Void = {}

        func descriptorIsReady(_ ready: Interest) -> Interest {
            calls.append(ready)
            return []
        }
        func loopWillEnd() {}
        deinit { whenReleased() }
    }

    /// The kernel has no room for the loop's own descriptors either, so there is no epoll descriptor to register with.
    @Test func areNotCalledBeforeThereIsAnEpollDescriptor() throws {
        var table = Syscalls()
        let real = table
        var refuses = true
        table.epollControl = { refuses && $0 >= 0 ? -Int(ENOSPC) : real.epollControl($0, $1, $2, $3) }
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock, syscalls: table) { loop in
            let pipe = Ends.pipe()
            fill(pipe.far)
            let handler = Handler()
            try loop.setInterest(.writing, of: pipe.far, handler: handler)
            // The time of two retries.
            for _ in 0..<2 {
                clock.advance(to: loop.now + .milliseconds(110))
                try loop.turn(.poll)
            }
            expectEqual(handler.calls, [])
            refuses = false
            while take(from: pipe.near) > 0 {}
            try loop.run { !handler.calls.isEmpty }
            expectEqual(handler.calls, [.writing])
        }
    }

    /// The `deinit` of a handler runs code of the user, which may use the descriptor again.
    @Test(.inRealTime, arguments: [true, false]) func areReleasedWhenThePollerIsConsistent(isReplaced: Bool) throws {
        let failures = Failures([:], ENOSPC)
        try EventLoop.withLoop(syscalls: failures.table()) { loop in
            let pipe = Ends.pipe()
            put(into: pipe.far)
            let next = Handler()
            let count = { loop.metrics.descriptors }
            var first: Handler? = Handler()
            first?.whenReleased = {
                expectEqual(count(), isReplaced ? 1 : 0)
                loop.forget(pipe.near)
                expectEqual(count(), 0)
                // Deferred.
                failures.left[.epollControl] = 1
                try! loop.setInterest(.reading, of: pipe.near, handler: next)
            }
            try loop.setInterest(.reading, of: pipe.near, handler: first)
            first = nil
            if isReplaced {
                try loop.setInterest(.reading, of: pipe.near, handler: Handler())
            } else {
                loop.forget(pipe.near)
            }
            expectEqual(count(), 1)
            expect(loop.isAlive)
            try loop.drive { !next.calls.isEmpty }
            expectEqual(count(), 0)
            expect(!loop.isAlive)
        }
    }
}
