@testable import PromisesTestSupport

/// A promise is cancelled while a thread runs its closure, which nothing can stop: everything after the promise waits
/// until the closure has returned.
@Suite(.ownThread) struct RunningWorkTests {
    @Test(arguments: RunningWork.allCases, BehindRunningWork.allCases)
    func isOverWhenTheClosureHasReturned(work: RunningWork, behind: BehindRunningWork) throws {
        try withRunningJob { loop, job in
            var ends: [Bool] = []
            let result = behind.attach(to: { work.begin(job) }, job) { ends.append(job.isOver.value) }
            for _ in 0..<12 { try loop.turn(.poll) }
            job.begun.wait()
            for _ in 0..<12 { try loop.turn(.poll) }
            result.cancel(with: Flaw(1))
            var isOverAtTheEnd: Bool?
            result.tap { _ in isOverAtTheEnd = job.isOver.value }.ignoringErrors()
            for _ in 0..<12 { try loop.turn(.poll) }
            expect(result.isPending && ends.isEmpty && isOverAtTheEnd == nil)
            job.end.open()
            expect(result, failsWith: Flaw(1))
            try loop.run()
            expectEqual(ends, [true])
            expectEqual(isOverAtTheEnd, true)
        }
    }

    @Test(arguments: RunningWork.allCases) func holdsThePermitThoughTheTimeIsUp(work: RunningWork) throws {
        try withRunningJob { loop, job in
            let limiter = Limiter(1)
            let begun = Promise<Void>.pending()
            let limited = limiter.run {
                let promise = work.begin(job)
                begun.resolver.fulfill()
                return promise
            }
            try hang(begun.promise)
            for _ in 0..<12 { try loop.turn(.poll) }
            job.begun.wait()
            var isOver: Bool?
            let next = limiter.run {
                isOver = job.isOver.value
                return Promise.value(2)
            }
            let late = limited.timeout(.zero)
            try loop.turn(.poll)
            try loop.turn(.poll)
            expect(late.isRejected && limiter.active == 1 && next.isPending)
            job.end.open()
            expect(next, gives: 2)
            expectEqual(isOver, true)
        }
    }

    /// The cancellation comes between the end of the closure and the wait for the promise that it returned; see
    /// `RunningWork.thenReturned` for a cancellation after it.
    @Test func whatItReturnsAfterTheCancellationEndsFirst() throws {
        try withRunningJob { loop, job in
            let (isInside, goOn) = (Gate(), Gate())
            let result = Promise.value(1).then(on: job.pools.1) { _ -> Promise<Int> in
                isInside.open()
                goOn.wait()
                let inner = Promise(on: job.pools.0) { job.run() }
                job.begun.wait()
                return inner
            }
            isInside.wait()
            result.cancel()
            goOn.open()
            // The thread of the pool has finished the closure, and everything that follows it.
            let isDone = Gate()
            try job.pools.1.dispatch { isDone.open() }
            isDone.wait()
            try loop.turn(.poll)
            expect(result.isPending)
            job.end.open()
            expect(result, failsWith: PromiseError.cancelled)
            expect(job.isOver.value)
        }
    }
}

/// Calls `body` with a loop and a job; all threads that may run the job have ended when this returns.
private func withRunningJob(_ body: (EventLoop, RunningJob) throws -> Void) throws {
    let driver = Driver()
    let job = RunningJob(pools: (try ThreadPool(threads: 1), try ThreadPool(threads: 1)), remote: driver.remote)
    try EventLoop.withLoop { loop throws in
        try body(loop, job)
        job.spawner.join()
    }
    driver.end()
    job.pools.0.shutDown()
    job.pools.1.shutDown()
}

/// A closure that runs until the test lets it return.
struct RunningJob: Sendable {
    let pools: (ThreadPool, ThreadPool)
    let remote: LoopRemote
    let spawner = Spawner()
    let begun = Gate()
    let end = Gate()
    let isOver = Shared(false)

    @Sendable func run() -> Int {
        begun.open()
        end.wait()
        isOver.value = true
        return 7
    }
}

/// The ways to give the closure to a thread.
enum RunningWork: CaseIterable {
    case made, guaranteed, map, then, thenReturned, recover, tap, onRemote, onThread

    func begin(_ job: RunningJob) -> Promise<Int> {
        let pool = job.pools.0
        switch self {
        case .made: return Promise(on: pool) { job.run() }
        case .guaranteed: return Guarantee(on: pool) { job.run() }.asPromise()
        case .map: return after(.zero).asPromise().map { 1 }.map(on: pool) { _ in job.run() }
        case .then: return Promise.value(1).then(on: pool) { _ in Promise.value(job.run()) }
        case .thenReturned:
            return Promise.value(1).then(on: job.pools.1) { _ in Promise(on: pool) { job.run() } }
        case .recover: return Promise<Int>(error: Flaw()).recover(on: pool) { _ in Promise.value(job.run()) }
        case .tap: return Promise.value(1).tap(on: pool) { _ in _ = job.run() }
        case .onRemote: return Promise.value(1).map(on: job.remote) { _ in job.run() }
        case .onThread: return Promise.value(1).map(on: job.spawner) { _ in job.run() }
        }
    }
}

/// The operations that wait for the end of the work.
enum BehindRunningWork: CaseIterable {
    case ensure, ensureThen, ensureInline, tap, returned, gathered, permit, cancelAndWait

    /// - Parameter didEnd: called when the work counts as ended.
    func attach(
        to begin: @escaping () -> Promise<Int>, _ job: RunningJob, _ didEnd: @escaping () -> Void
    ) -> Promise<Int> {
        switch self {
        case .ensure: return begin().ensure(didEnd)
        case .ensureThen:
            return begin().ensureThen {
                didEnd()
                return .value
            }
        case .ensureInline:
            // Runs on the thread that settles, which waits at the gate until then.
            let isOver = job.isOver
            let seen = Shared<Bool?>(nil)
            return begin().tap(on: nil) { _ in seen.value = isOver.value }.ensure { if seen.value == true { didEnd() } }
        case .tap: return begin().map { $0 }.tap { _ in didEnd() }.map { $0 }
        case .returned: return after(.zero).then { begin().ensure(didEnd) }
        case .gathered: return when(fulfilled: [begin().ensure(didEnd), endless()]).map { $0[0] }
        case .permit:
            let limiter = Limiter(1)
            let result = limiter.run(begin)
            limiter.run {
                didEnd()
                return Promise.value
            }.cauterize()
            return result
        case .cancelAndWait:
            let work = begin()
            let (result, resolver) = Promise<Int>.pending()
            resolver.onCancelThen { work.cancelAndWait().get(didEnd) }
            work.tap { resolver.resolve($0) }.ignoringErrors()
            return result
        }
    }
}
