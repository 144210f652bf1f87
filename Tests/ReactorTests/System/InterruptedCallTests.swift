/// System calls interrupted by a signal: no caller notices. (`LoopCloseTests` has `close`, and `MailboxTests` mail.)
struct InterruptedCallTests {
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
}
