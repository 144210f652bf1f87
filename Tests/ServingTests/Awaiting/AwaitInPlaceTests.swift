import Synchronization

@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// A loop as an executor that counts its jobs.
private final class CountingExecutor: SerialExecutor {
    private let remote: LoopRemote
    let jobs = Atomic(0)

    init(_ remote: LoopRemote) { self.remote = remote }

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.add(1, ordering: .relaxed)
        let job = UnownedJob(job)
        remote.submit { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

/// Belongs to one actor.
private final class Book {
    var entries: [String] = []
}

private actor Clerk {
    private let executor: CountingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let (opened, opening) = Promise<Book>.pending()
    private let (closed, close) = Guarantee<Book>.pending()
    private(set) var thread: pthread_t?

    init(on loop: LoopRemote) { executor = CountingExecutor(loop) }

    var jobs: Int { executor.jobs.load(ordering: .relaxed) }

    func open() {
        let book = Book()
        opening.fulfill(book)
        close(book)
    }

    /// The object from the actor's own promise belongs to the actor.
    func write(_ line: String) async throws -> Int {
        let book = try await opened.value
        thread = threadOfCaller()
        book.entries.append(line)
        return await closed.value.entries.count
    }

    /// Begins to look in a task that prefers no executor. The body of a `Promise` prefers one, and with Swift 6.2 each await
    /// then enqueues it: see stability.md.
    func beginToLook() -> Task<(blocks: Int, jobs: Int, blocksToMakeOne: Int), any Error> {
        Task { try await lookAtWhatHasSettled() }
    }

    /// The number of blocks and of jobs that it takes to await a settled promise, and of blocks to make one.
    private func lookAtWhatHasSettled() async throws -> (blocks: Int, jobs: Int, blocksToMakeOne: Int) {
        let promise = Promise.value(1)
        let guarantee = Guarantee.value("a string that takes a block of its own")
        let asked = BlocksAskedFor()
        let askedToMakeOne = BlocksAskedFor()
        let jobsBefore = jobs
        for round in 0..<20 {
            asked.begin()
            _ = try await promise.value
            _ = try await opened.value
            _ = await guarantee.value
            asked.end()
            askedToMakeOne.begin()
            _ = Promise.value(round)
            askedToMakeOne.end()
        }
        return (asked.sizes, jobs - jobsBefore, askedToMakeOne.sizes)
    }
}

/// `value` runs on its caller's executor.
@Suite(.ownThread) struct AwaitInPlaceTests {
    @Test(.inRealTime) func theValueNeedNotBeSendable() throws {
        let loop = EventLoop.current
        let clerk = Clerk(on: loop.remote)
        let lines = Promise { try await (clerk.write("first"), clerk.write("second")) }
        // The task waits, or arrives later.
        after(.milliseconds(1)).done { Promise { await clerk.open() }.cauterize() }
        expect(try hang(lines, timeout: patience) == (1, 2))
        let thread = try hang(Promise { await clerk.thread })
        expectEqual(thread.map { pthread_equal($0, pthread_self()) != 0 }, true)
        try loop.run()
    }

    @Test(.inLoop) func aCancelledHandlerThatHoldsTheResolverEndsTheWait() throws {
        var last: Resolver<Int>?
        let promise = Promise<Int> { last = $0 }
        let waiting = Promise { try await promise.value }
        while waiterCount(of: promise) == 0 { sched_yield() }
        let lines = try logged {
            endless().done { [resolver = last.take()!] in resolver.fulfill($0) }.cancel()
            try EventLoop.current.turn(.poll)
        }
        expectEqual(lines.count, 1)
        #expect(throws: PromiseError.abandoned) { try hang(waiting, timeout: patience) }
    }

    @Test(.inRealTime) func whatHasSettledCostsNoBlockAndNoJob() throws {
        guard !isSanitized else { return }
        let loop = EventLoop.current
        let clerk = Clerk(on: loop.remote)
        let opened = Promise { await clerk.open() }
        try hang(opened, timeout: patience)
        let looking = try hang(Promise { await clerk.beginToLook() }, timeout: patience)
        let seen = try hang(Promise { try await looking.value }, timeout: patience)
        expect(seen.blocks == 0 && seen.jobs == 0, "\(seen)")
        expect(seen.blocksToMakeOne > 0, "the measurement sees a block")
    }
}
