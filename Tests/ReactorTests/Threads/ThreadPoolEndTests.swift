/// The end of a pool: by `shutDown()`, or with its last reference.
struct ThreadPoolEndTests {
    @Test func shuttingDownRunsWhatWaitsAndTakesNoMore() throws {
        let pool = try ThreadPool(name: "ending", threads: 2)
        let (latch, ran) = (Gate(), Counter())
        try pool.block(2, by: latch)
        for _ in 0..<100 { try pool.dispatch { ran.add() } }
        let closer = TestThread { pool.shutDown() }
        spin { (try? pool.dispatch { ran.add(1000) }) == nil }
        expectEqual(refusal { try pool.dispatch {} }, .poolIsShutDown(name: "ending"))
        latch.open(2)
        closer.join()
        expectEqual(ran.value % 1000, 100)
        expect(pool.metrics.queued == 0 && pool.metrics.busy == 0)
        pool.shutDown()
    }

    @Test func aJobShutsItsOwnPoolDown() throws {
        let pool = try ThreadPool(threads: 2)
        let (isClosed, ran) = (Gate(), Counter())
        try pool.dispatch {
            try? pool.dispatch { ran.add() }
            pool.shutDown()
            isClosed.open()
        }
        isClosed.wait()
        expect(refusal { try pool.dispatch {} } != nil)
        // Others can still wait for the end.
        pool.shutDown()
        expectEqual(ran.value, 1)
    }

    @Test func aValueThatLivesAsLongAsAThreadShutsThePoolDown() throws {
        let pool = try ThreadPool(threads: 1)
        let ran = Counter()
        let local = LoopLocal {
            LastWords {
                pool.shutDown()
                ran.add()
            }
        }
        try pool.dispatch { local.withValue { _ in } }
        pool.shutDown()
        expectEqual(ran.value, 1)
    }

    @Test func theLastReferenceGoesOnAThreadOfItsOwn() throws {
        for _ in 0..<50 {
            let (latch, ran) = (Gate(), Counter())
            do {
                let pool = try ThreadPool(threads: 2)
                for _ in 0..<2 {
                    try pool.dispatch {
                        latch.wait()
                        withExtendedLifetime(pool) {}
                    }
                }
                for _ in 0..<4 { try pool.dispatch { ran.add() } }
            }
            latch.open(2)
            spin { ran.value == 4 }
        }
    }

    @Test func theSharedOneDoesNotEnd() throws {
        ThreadPool.shared.shutDown()
        let ran = Gate()
        try ThreadPool.shared.dispatch { ran.open() }
        ran.wait()
    }

    /// Jobs are not released under the lock: a release may use the pool.
    @Test func aJobsEndMayUseThePool() throws {
        let pool = try ThreadPool(threads: 1, queueLimit: 1)
        let (latch, ran) = (Gate(), Counter())
        try pool.block(by: latch)
        try pool.dispatch {}
        do {
            // Only this thread touches it.
            nonisolated(unsafe) let words = LastWords { ran.add(pool.metrics.queued) }
            expect(refusal { try pool.dispatch { words.use() } } != nil)
        }
        expectEqual(ran.value, 1)
        latch.open()
        pool.shutDown()
    }
}
