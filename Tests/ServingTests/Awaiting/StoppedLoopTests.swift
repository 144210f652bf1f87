@testable import PromisesTestSupport

/// The effect of `stop()` on waiters on the loop, and on waiters for its end.
@Suite(.ownThread) struct StoppedLoopTests {
    private actor Resident {
        private let home: LoopRemote
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: LoopRemote) { self.home = home }

        func rest() async { await pause().value }
        private func pause() -> Guarantee<Void> { after(.seconds(60)) }

        func listen(_ hasBegun: Gate) async throws {
            let sequence = try heard()
            hasBegun.open()
            for try await _ in sequence {}
        }
        private func heard() throws -> LoopSequence<CInt> { try signals(SIGWINCH) }
    }

    @Test func aHangOnAGuaranteeGoesOn() throws {
        let worker = try EventLoop.spawn()
        let isDone = Shared(false)
        worker.submit {
            hang(after(.milliseconds(20)))
            isDone.change { $0 = true }
        }
        worker.stop()
        worker.join()
        expect(isDone.value)
    }

    @Test func aTaskThatAwaitsAGuaranteeNeverResumesAndThatIsReported() throws {
        let reports = LogRecorder(where: {
            guard case .awaitStalled(let promise, _) = $0 else { return false }
            return promise.callSite?.file.hasSuffix("StoppedLoopTests.swift") != false
        })
        defer { reports.stop() }
        let worker = try EventLoop.spawn()
        let resident = Resident(on: worker)
        Task.detached(executorPreference: worker) { await resident.rest() }
        // The task and its timer have begun when this answer arrives.
        for _ in 0..<3 { EventLoop.withLoop { _ in expect(Guarantee(on: worker) { 1 }.asPromise(), gives: 1) } }
        worker.stop()
        worker.join()
        while reports.count == 0 { sched_yield() }
        expectEqual(reports.count, 1)
    }

    @Test func tasksThatOutliveTheirLoopDoNotMeetItsEnd() throws {
        for _ in 0..<scaled(200) {
            let worker = try EventLoop.spawn()
            let ended = (0..<4).map { _ in
                let hasBegun = Gate()
                let resident = Resident(on: worker)
                let task = Task.detached(executorPreference: worker) { try? await resident.listen(hasBegun) }
                hasBegun.wait()
                return task
            }
            worker.stop()
            worker.join()
            withExtendedLifetime(ended) {}
        }
    }

    @Test func aWaiterForTheEndOfItsOwnLoopIsReleased() throws {
        let tally = Tally()
        let worker = try EventLoop.spawn()
        worker.submit {
            let token = tally.token()
            EventLoop.current.remote.ended.done { token.use() }
        }
        let lines = logged {
            worker.stop()
            worker.join()
        }
        expectEqual(tally.alive, 0)
        expect(lines.count <= 1)
    }

    @Test func whoAsksForTheEndOfAnotherDoesNotWaitForIt() throws {
        let worker = try EventLoop.spawn()
        try EventLoop.withLoop { loop throws in
            _ = worker.ended
            try loop.run()
        }
        worker.stop()
        worker.join()
    }

    @Test func joiningInAForkedChildDoesNotWait() throws {
        let worker = try EventLoop.spawn()
        let child = fork()
        if child == 0 {
            alarm(20)
            worker.join()
            _exit(42)
        }
        var status: CInt = 0
        expectEqual(waitpid(child, &status, 0), child)
        expectEqual(status, 42 << 8)
        worker.stop()
        worker.join()
    }

    @Test(.inLoop) func bodiesLeaveNoStopBehind() throws {
        let loop = EventLoop.current
        try loop.run { loop.stop() }
        var hasFired = false
        loop.schedule(after: .seconds(1)) { hasFired = true }
        try loop.run()
        expect(hasFired)
    }
}

/// `LoopGroup.ended` in an async function, whose thread drives no loop.
@Suite(.ownThread) struct AwaitingEndedGroupsTests {
    @Test(.inRealTime) func anAsyncFunctionSeesTheEndOfAGroup() throws {
        let group = try LoopGroup(loops: 2)
        let (seen, resolver) = Promise<Bool>.pending()
        Task.detached {
            let ended = group.ended
            group.stop()
            await ended.value
            resolver.fulfill(group.allSatisfy(\.hasEnded))
        }
        expect(seen, gives: true)
    }
}
