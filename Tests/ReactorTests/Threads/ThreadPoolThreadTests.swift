import CLinux

/// The threads of a pool: names, signals, failures to start, and their loops.
struct ThreadPoolThreadTests {
    @Test(arguments: [
        ("pool", "pool-1", "pool-2"), ("a-very-long-name-of-a-pool", "a-very-long-n-1", "a-very-long-n-2"),
        ("ünïcödé-ünïcödé", "ünïcödé--1", "ünïcödé--2"), ("", "-1", "-2"),
    ])
    func bearNameAndNumber(name: String, first: String, second: String) throws {
        let pool = try ThreadPool(name: name, threads: 2)
        let names = SharedList<String>()
        let latch = Gate()
        for count in 1...2 {
            try pool.dispatch {
                names.append(nameOfThisThread())
                latch.wait()
            }
            spin { names.value.count == count }
        }
        latch.open(2)
        pool.shutDown()
        expectEqual(names.value, [first, second])
    }

    @Test func takeNoSignalsSaveFaults() throws {
        let pool = try ThreadPool(threads: 1)
        var before = sigset_t()
        pthread_sigmask(SIG_SETMASK, nil, &before)
        let seen = SharedList<CInt>()
        try pool.dispatch {
            var mask = sigset_t()
            pthread_sigmask(SIG_SETMASK, nil, &mask)
            for signal in [SIGTERM, SIGINT, SIGALRM, SIGCHLD, SIGUSR1, SIGPIPE, SIGPROF, SIGSEGV, SIGTRAP, SIGILL] {
                seen.append(sigismember(&mask, signal))
            }
        }
        pool.shutDown()
        expectEqual(seen.value, [1, 1, 1, 1, 1, 1, 1, 0, 0, 0])
        var after = sigset_t()
        pthread_sigmask(SIG_SETMASK, nil, &after)
        let isUnchanged = (1..<CInt(64)).allSatisfy { sigismember(&before, $0) == sigismember(&after, $0) }
        expect(isUnchanged, "the caller has its own mask again")
    }

    @Test func aFirstThreadThatCannotBeStarted() throws {
        let pool = try ThreadPool(name: "poor", threads: 2, queueLimit: 1) { _, _ in EAGAIN }
        let tally = Tally()
        let error = failure { try pool.dispatch(tally.boundForThreads()) }
        expect(error as? SystemError == SystemError(.threadCreate, EAGAIN) && tally.alive == 0)
        expectEqual(pool.figures, [0, 0, 0, 0])
        pool.shutDown()
    }

    @Test func aPoolThatKeepsJobsRunsThemWhenAThreadCanBeStarted() throws {
        let isShort = Shared(true)
        let workers = ThreadPoolWorkers(
            "poor", 1, .max, { isShort.value ? EAGAIN : LibraryThread.create($0, $1) }, keepsJobs: true)
        let ran = SharedList<Int>()
        for job in 1...2 { expect(try !workers.take(PoolJob { ran.append(job) })) }
        expectEqual(
            failure { try workers.startThreadIfNeeded() } as? SystemError,
            SystemError(.threadCreate, EAGAIN, detail: "of the pool \"poor\""))
        expect(workers.metrics.queued == 2 && workers.metrics.threads == 0)
        isShort.value = false
        for _ in 0..<2 { try workers.startThreadIfNeeded() }
        expect(try workers.take(PoolJob { ran.append(3) }))
        workers.shutDown()
        expectEqual(ran.value, [1, 2, 3])
        expectEqual(workers.metrics.threads, 1)
    }

    @Test func withThoseThatThereAreItGoesOnUpToTheLimitOfTheQueue() throws {
        let (isShort, latch, ran) = (Shared(false), Gate(), Counter())
        let pool = try ThreadPool(name: "poor", threads: 4, queueLimit: 1) {
            isShort.value ? EAGAIN : LibraryThread.create($0, $1)
        }
        try pool.block(by: latch)
        isShort.value = true
        try pool.dispatch { ran.add() }
        expect(pool.metrics.threads == 1 && pool.metrics.queued == 1)
        expectEqual(refusal { try pool.dispatch {} }, .queueIsFull(name: "poor", limit: 1))
        isShort.value = false
        try pool.dispatch { ran.add() }
        spin { ran.value == 2 }
        expectEqual(pool.metrics.threads, 2)
        latch.open()
        pool.shutDown()
    }

    @Test func whatIsReadyOnTheirLoopsIsRunAfterTheJob() throws {
        let pool = try ThreadPool(threads: 1)
        let log = SharedList<String>()
        try pool.dispatch {
            let loop = EventLoop.ofCurrentThread
            loop.enqueue {
                log.append("ready")
                loop.enqueue { log.append("and what that makes ready") }
            }
            log.append("job")
        }
        try pool.dispatch { log.append("next job") }
        pool.shutDown()
        expectEqual(log.value, ["job", "ready", "and what that makes ready", "next job"])
    }

    @Test func whatStillWaitsOnTheirLoopsIsReleasedAfterTheJob() throws {
        let pool = try ThreadPool(threads: 1)
        let tally = Tally()
        let (serials, livingThen) = (SharedList<Int>(), Shared(-1))
        try pool.dispatch {
            let loop = EventLoop.ofCurrentThread
            loop.schedule(after: .seconds(3600), tally.bound())
            serials.append(loop.serial)
        }
        try pool.dispatch {
            livingThen.value = tally.alive
            serials.append(EventLoop.ofCurrentThread.serial)
            EventLoop.ofCurrentThread.enqueue {}
        }
        try pool.dispatch { serials.append(EventLoop.ofCurrentThread.serial) }
        pool.shutDown()
        expectEqual(livingThen.value, 0)
        let seen = serials.value
        expect(seen[0] != seen[1] && seen[1] == seen[2], "another loop only where something was left")
    }
}
