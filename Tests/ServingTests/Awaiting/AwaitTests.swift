@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct AwaitingTests {
    @Test func whatHasSettledIsThereAtOnce() async throws {
        expectEqual(try await Promise.value(3).value, 3)
        expectEqual(await Guarantee.value("x").value, "x")
        await #expect(throws: Flaw(1)) { try await Promise<Int>(error: Flaw(1)).value }
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await Promise.value(3).value
        }
        expectEqual(try await cancelled.value, 3)
    }

    @Test func aLoopThatIsDrivenElsewhere() async throws {
        let driver = Driver()
        let promise = await driver.run { after(.milliseconds(1)).map { 5 }.asPromise() }
        expectEqual(try await promise.value, 5)
        let guarantee = await driver.run { after(.milliseconds(1)).map { 6 } }
        expectEqual(await guarantee.value, 6)
        let failing = await driver.run { after(.milliseconds(1)).then { Promise<Int>(error: Flaw(2)) } }
        await #expect(throws: Flaw(2)) { try await failing.value }
        driver.end()
    }

    @Test func aCancelledTaskLeavesAloneWhatOthersWaitFor() async throws {
        let (promise, resolver) = Promise<Int>.pending()
        let other = Task { try await promise.value }
        // The other one is added to the list later; this pipe listens from now on.
        let seen = Shared(0)
        promise.pipe { if case .success(let value) = $0 { seen.change { $0 = value } } }
        let task = Task { try await promise.value }
        task.cancel()
        _ = await task.result
        expect(promise.isPending)
        resolver.fulfill(9)
        expectEqual(try await other.value, 9)
        expectEqual(seen.value, 9)
    }

    @Test func aTaskThatIsCancelledAlreadyDoesNotWait() async throws {
        let (promise, resolver) = Promise<Int>.pending()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await promise.value
        }
        let outcome = await task.result
        #expect(throws: CancellationError.self) { try outcome.get() }
        expect(promise.error as? PromiseError == .cancelled)
        withExtendedLifetime(resolver) {}
    }

    @Test func settlingAndCancellingAtOnceResumesOnce() async throws {
        for round in 0..<scaled(1000) {
            let (promise, resolver) = Promise<Int>.pending()
            let task = Task { try await promise.value }
            let thread = TestThread {
                if round % 2 == 0 { sched_yield() }
                resolver.fulfill(round)
            }
            if round % 3 == 0 { await Task.yield() }
            task.cancel()
            switch await task.result {
            case .success(let value): expectEqual(value, round)
            case .failure(let error): expect(error is CancellationError || error as? PromiseError == .cancelled)
            }
            thread.join()
        }
    }

    @Test func aTaskThatWithdrawsLeavesToAHandlerWhatThatHasReturned() async throws {
        let driver = Driver()
        let (shared, outer) = await driver.run {
            let shared = after(.seconds(3600)).map { 1 }.asPromise()
            return (shared, Promise.value.then { shared })
        }
        // From the next job on the two are merged, without a handler.
        await driver.run {}
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await shared.value
        }
        let outcome = await task.result
        #expect(throws: CancellationError.self) { try outcome.get() }
        expect(await driver.run { outer.isPending && shared.isPending })
        await driver.run { outer.cancel() }
        driver.end()
    }

    /// On the promise's loop, whichever thread cancels the task.
    @Test func aCancelledTaskCancelsAPromiseOfAnotherLoopUpToTheTimer() async throws {
        let driver = Driver()
        let promise = await driver.run { after(.seconds(3600)).map { 1 }.asPromise() }
        let home = await driver.run { EventLoop.current.remote }
        let task = Task(executorPreference: home) { try await promise.value }
        // A job after the one in which it begins to wait.
        await driver.run {}
        task.cancel()
        let outcome = await task.result
        #expect(throws: CancellationError.self) { try outcome.get() }
        // The job of the cancellation runs before this one.
        let isIdle = await driver.run { EventLoop.current.nextDeadline == nil }
        expect(isIdle)
        expect(promise.error as? PromiseError == .cancelled)
        driver.end()
    }

    @Test(.pair) func whatACancelledTaskWaitedForLeavesTheKernel() throws {
        let read = connection.receive()
        let timer = after(.seconds(3600)).asPromise()
        let tasks = [Promise { _ = try await read.value }, Promise { try await timer.value }]
        for task in tasks { task.cancel() }
        // Ends, since nothing is left to wait for.
        try net.loop.run()
        expect(read.error as? PromiseError == .cancelled)
        expect(timer.error as? PromiseError == .cancelled)
        try peer.send("hello")
        expectEqual(try hang(connection.receive(), timeout: patience), Array("hello".utf8))
    }
}
