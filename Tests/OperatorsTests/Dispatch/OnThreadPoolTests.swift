@testable import PromisesTestSupport

/// A loop counts the jobs of a pool that its promises wait for.
struct OnThreadPoolTests {
    @Test func itWaitsWhileTheJobIsQueuedOrRuns() throws {
        let pool = try ThreadPool(threads: 1)
        try EventLoop.withLoop { loop throws in
            let (begun, gate) = (Gate(), Gate())
            let first = Guarantee(on: pool) {
                begun.open()
                gate.wait()
            }
            let second = Promise.value(2).map(on: pool) { $0 }
            begun.wait()
            expect(loop.isAlive && !loop.isReady)
            gate.open()
            try loop.run()
            expect(first.isFulfilled && second.settledValue == 2 && !loop.isAlive)
        }
        pool.shutDown()
    }

    enum Work: CaseIterable {
        case job, task
        /// Their loop, that of the pool's thread, is not driven.
        case readyHandlers
    }

    /// What a job begins belongs to the same loop.
    @Test(.ownThread, arguments: Work.allCases) func itWaitsForWhatAJobBegins(work: Work) throws {
        for _ in 0..<scaled(500) {
            try EventLoop.withLoop { loop throws in
                let gate = Gate()
                let (promise, resolver) = Promise<Int>.pending()
                let outer = Promise.value(1).then(on: ThreadPool.shared) { value -> Promise<Int> in
                    switch work {
                    case .job:
                        Guarantee(on: .shared) { gate.wait() }.map(on: ThreadPool.shared) { value + 2 }.asPromise()
                    case .task: Promise { try await promise.value + value }
                    case .readyHandlers: Promise.value(value).map { $0 + 1 }.map { $0 + 1 }
                    }
                }
                let opener = TestThread {
                    gate.open()
                    resolver.fulfill(2)
                }
                try loop.run()
                expectEqual(outer.settledValue, 3)
                opener.join()
            }
        }
    }

    /// A promise that a handler has returned no longer belongs to the job: here it waits for time to pass.
    @Test func whatTheHandlerHasReturnedIsNotCounted() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop throws in
            let (inner, resolver) = Promise<Int>.pending()
            let outer = Promise.value(1).then(on: ThreadPool.shared) { _ in inner }
            loop.schedule(after: .seconds(5)) { resolver.fulfill(4) }
            try loop.run()
            expect(outer.settledValue == 4 && clock.now.nanoseconds == 5_000_000_000)
        }
    }

    /// The loop of the thread that attached the handler, whichever thread settles the source.
    @Test(.inRealTime) func theLoopIsThatOfTheHandler() throws {
        let loop = EventLoop.current
        let (source, resolver) = Promise<Int>.pending()
        let gate = Gate()
        let mapped = source.map(on: ThreadPool.shared) { value in
            gate.wait()
            return value
        }
        expect(!loop.isAlive, "nothing has been dispatched as yet")
        TestThread.run {
            resolver.fulfill(1)
            expect(!EventLoop.current.isAlive)
        }
        expect(loop.isAlive)
        gate.open()
        try loop.run()
        expectEqual(mapped.settledValue, 1)
    }

    @Test func aCancelledJobThatHasNotBegunIsNotCounted() throws {
        let pool = try ThreadPool(threads: 1)
        try EventLoop.withLoop { loop throws in
            let (begun, gate) = (Gate(), Gate())
            try pool.dispatch {
                begun.open()
                gate.wait()
            }
            begun.wait()
            let queued = Promise.value(1).map(on: pool) { $0 }
            expect(loop.isAlive)
            queued.cancel()
            try loop.run()
            expect(!loop.isAlive)
            gate.open()
        }
        pool.shutDown()
    }

    /// A job that a job starts is counted for the loop that both work for, not for the loop of the job's own thread.
    @Test func hangInAJobKnowsThatThePoolCanSettle() throws {
        let pool = try ThreadPool(threads: 2)
        try EventLoop.withLoop { loop throws in
            let answers = Promise.value(1).map(on: pool) { _ in
                let gate = Gate()
                let alone = EventLoop.current.canWakeItself
                let inner = Guarantee(on: pool) { gate.wait() }
                let together = EventLoop.current.canWakeItself
                gate.open()
                hang(inner)
                return [alone, together]
            }
            try loop.run()
            expectEqual(answers.settledValue, [false, true])
        }
        pool.shutDown()
    }

    /// A virtual time-out beside a job that another thread releases: the job takes no virtual time.
    @Test func aTimeOutInVirtualTimeWaitsForTheJob() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop throws in
            let gate = Gate()
            let job = Promise.value(1).map(on: ThreadPool.shared) { value in
                gate.wait()
                return value
            }
            let opener = TestThread { gate.open() }
            expectEqual(try hang(job.timeout(.seconds(3600))), 1)
            expectEqual(clock.now.nanoseconds, 0)
            opener.join()
            let late = after(.seconds(1)).map(on: ThreadPool.shared) { _ in 2 }.timeout(.seconds(2))
            expectEqual(try hang(late), 2)
            expectEqual(clock.now.nanoseconds, 1_000_000_000)
        }
    }

    @Test func whatAJobLeavesWaitingIsReportedAndAbandoned() throws {
        let isReported = Gate()
        let recorder = LogRecorder(
            where: { if case .undeliveredHandlers(77) = $0 { true } else { false } },
            reaction: { _ in isReported.open() })
        defer { recorder.stop() }
        try EventLoop.withLoop { _ throws in
            let (source, resolver) = Promise<Int>.pending()
            let waiting = Promise.value(1).then(on: ThreadPool.shared) { _ in
                for _ in 0..<38 { source.done { _ in }.ignoringErrors() }
                return source.map { $0 }
            }
            isReported.wait()
            resolver.fulfill(1)
            expect(waiting, failsWith: PromiseError.loopEnded)
        }
    }

    /// Its waiters are notified before the loop may end.
    @Test(.inRealTime) func whatAJobLeavesWaitingIsReleasedBeforeTheJobCounts() throws {
        let loop = EventLoop.current
        let (isCounted, isGone) = (Shared(false), Gate())
        // Asked while this thread waits for the gate.
        nonisolated(unsafe) let unsafeLoop = loop
        let waiting = Promise.value(1).then(on: ThreadPool.shared) { value -> Promise<Int> in
            let last = LastWords {
                isCounted.change { $0 = unsafeLoop.isAlive && !unsafeLoop.isReady }
                isGone.open()
            }
            return after(.seconds(3600)).map { withExtendedLifetime(last) { value } }.asPromise()
        }
        isGone.wait()
        try loop.run()
        expect(isCounted.value)
        expect(waiting.error as? PromiseError == .loopEnded)
    }
}
