/// How a pool handles jobs, and the jobs that it refuses.
struct ThreadPoolJobTests {
    @Test func threadsAreStartedOneByOneAndUsedAgain() throws {
        let pool = try ThreadPool(threads: 3)
        expectEqual(pool.metrics.threads, 0)
        let latch = Gate()
        for number in 1...3 {
            try pool.block(by: latch)
            expect(pool.metrics.threads == number && pool.metrics.busy == number)
        }
        try pool.dispatch {}
        expect(pool.metrics.threads == 3 && pool.metrics.queued == 1)
        latch.open(3)
        spin { pool.metrics.completed == 4 }
        try pool.block(3, by: latch)
        latch.open(3)
        pool.shutDown()
        expectEqual(pool.figures, [3, 0, 0, 7])
    }

    @Test func aFullQueueRefuses() throws {
        let pool = try ThreadPool(name: "small", threads: 2, queueLimit: 3)
        expect(pool.metrics.threadLimit == 2 && pool.metrics.queueLimit == 3)
        let (latch, tally) = (Gate(), Tally())
        try pool.block(2, by: latch)
        for _ in 0..<3 { try pool.dispatch(tally.boundForThreads()) }
        expectEqual(
            refusal { try pool.dispatch(tally.boundForThreads()) }, .queueIsFull(name: "small", limit: 3))
        expectEqual(tally.alive, 3, "what is refused is released")
        expectEqual(pool.metrics.queued, 3)
        latch.open(2)
        spin { pool.metrics.completed == 5 }
        try pool.dispatch(tally.boundForThreads())
        pool.shutDown()
        expectEqual(tally.alive, 0)
    }

    /// The limit counts jobs for which no thread is free, so it does not depend on how soon the threads of a new pool
    /// start.
    @Test func jobsThatThreadsAreFreeForDoNotCount() throws {
        for _ in 0..<100 {
            let pool = try ThreadPool(threads: 2, queueLimit: 1)
            let latch = Gate()
            for _ in 0..<3 { try pool.dispatch { latch.wait() } }
            expect(refusal { try pool.dispatch {} } != nil)
            latch.open(3)
            pool.shutDown()
        }
    }

    @Test func countsThatMakeNoSense() throws {
        let threads = refusal { _ = try ThreadPool(threads: 0) }
        expectEqual(threads, .badInput("ThreadPool(threads: 0): there must be at least 1"))
        let limit = refusal { _ = try ThreadPool(queueLimit: 0) }
        expectEqual(limit, .badInput("ThreadPool(queueLimit: 0): it must be at least 1"))
        _ = try ThreadPool(threads: .max, queueLimit: .max)
        expect((2...8).contains(ThreadPool.defaultThreads))
    }

    @Test func errorsAreSentences() {
        let sentences = [
            DispatchError.loopEnded, .poolIsShutDown(name: "a"), .queueIsFull(name: "a", limit: 1),
            .queueIsFull(name: "a", limit: 2), .poolIsForked(name: "a"), .badInput("b"),
        ].map { "\($0)" }
        expectEqual(
            sentences,
            [
                "dispatch to an event loop that has ended",
                "dispatch to the thread pool \"a\", which has been shut down",
                "dispatch to the thread pool \"a\", where 1 job waits already",
                "dispatch to the thread pool \"a\", where 2 jobs wait already",
                "dispatch to the thread pool \"a\" of the process that this one was forked from", "b",
            ])
    }

    @Test func aLoopsRemoteIsADispatcher() throws {
        let ran = Counter()
        let remote = try EventLoop.withLoop { loop in
            let dispatcher: any Dispatcher = loop.remote
            try dispatcher.dispatch { ran.add() }
            expectEqual(ran.value, 0)
            try loop.run()
            expectEqual(ran.value, 1)
            return loop.remote
        }
        expectEqual(refusal { try remote.dispatch { ran.add() } }, .loopEnded)
        expectEqual(ran.value, 1)
    }
}

/// What a job of a pool leaves on the loop of its thread does not affect the next job.
struct LeftByJobTests {
    enum Left: CaseIterable { case hook, laterHook, stop, hold }

    @Test(arguments: Left.allCases) func isOverWhenTheNextJobBegins(left: Left) throws {
        let pool = try ThreadPool(threads: 1)
        let calls = Counter()
        let hold = Shared<EventLoop.Hold?>(nil)
        try pool.dispatch {
            let loop = EventLoop.current
            switch left {
            case .hook: loop.beforeWaiting { calls.add() }
            case .laterHook: loop.afterWaiting { calls.add() }
            case .stop: loop.stop()
            case .hold: hold.value = loop.hold()
            }
        }
        let (fired, wasAlive) = (Counter(), Counter())
        try pool.dispatch {
            let loop = EventLoop.current
            if loop.isAlive { wasAlive.add() }
            loop.schedule(after: .milliseconds(1)) { fired.add() }
            _ = try? loop.run { fired.value == 1 }
        }
        pool.shutDown()
        expectEqual(fired.value, 1, "the stop was not for this job")
        expect(wasAlive.value == 0 && calls.value == 0)
        expectEqual(hold.value?.isActive ?? false, false)
    }
}
