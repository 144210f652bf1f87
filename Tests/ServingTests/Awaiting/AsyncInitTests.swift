@testable import PromisesTestSupport

@Suite(.ownThread) struct AsyncInitTests {
    @Test(.inRealTime) func whatAnAsyncFunctionReturnsOrThrows() throws {
        let loop = EventLoop.current
        let here = pthread_self()
        var seen: [Int] = []
        Promise { await Self.doubled(21) }.done {
            if pthread_equal(pthread_self(), here) != 0 { seen.append($0) }
        }.orFail()
        try loop.run()
        expect(seen == [42] && !loop.isAlive)
        expect(
            Promise<Int> {
                await Task.yield()
                throw Flaw(3)
            }, failsWith: Flaw(3))
    }

    @Test(.inRealTime) func cancellingThePromiseCancelsTheTask() throws {
        let (began, begin) = Promise<Void>.pending()
        let ended = Shared(false)
        let promise = Promise<Int> {
            begin.fulfill()
            while !Task.isCancelled { await Task.yield() }
            ended.change { $0 = true }
            return 1
        }
        try hang(began, timeout: patience)
        promise.cancel()
        expect(promise, failsWith: PromiseError.cancelled)
        expect(ended.value)
    }

    @Test(.inRealTime) func aTimeLimitReachesTheTask() throws {
        let loop = EventLoop.current
        let endless = Promise<Int> {
            while !Task.isCancelled { await Task.yield() }
            throw CancellationError()
        }
        expect(endless.timeout(.milliseconds(5)), failsWith: PromiseError.timedOut)
        try loop.run()
        expect(endless.isRejected)
    }

    @Test(.inLoop) func virtualTimeStandsStillMeanwhile() throws {
        let loop = EventLoop.current
        let gate = Promise<Void>.pending()
        let promise = Promise { try await gate.promise.value }.timeout(.seconds(3600))
        let thread = TestThread { gate.resolver.fulfill() }
        try hang(promise)
        thread.join()
        expectEqual(loop.now.nanoseconds, 0)
    }

    @Test func anotherThreadMayCancel() throws {
        for _ in 0..<scaled(500) {
            try EventLoop.withLoop { loop throws in
                let promise = Promise<Int> {
                    await Task.yield()
                    return 1
                }
                let thread = TestThread { promise.cancel() }
                _ = try? hang(promise)
                thread.join()
                try loop.run()
                expect(promise.isResolved)
            }
        }
    }

    @Test(.inRealTime) func theClosureTellsWhichGuaranteeIsMeant() throws {
        let sealed = Guarantee { seal in seal(1) }
        let shorter = Guarantee<Int> { $0(2) }
        let several = Guarantee {
            let number = await Self.doubled(1)
            if number > 5 { return "much" }
            return "\(number)"
        }
        let empty = Guarantee {}
        let typed = Guarantee<Void> {}
        let plain = Guarantee { 3 }
        expect(sealed, gives: 1)
        expect(shorter, gives: 2)
        expect(several, gives: "2")
        expect(plain, gives: 3)
        hang(empty)
        hang(typed)
    }

    @Test(.inRealTime) func cancellingTheGuaranteeCancelsTheTask() throws {
        let loop = EventLoop.current
        let (began, begin) = Promise<Void>.pending()
        let ended = Shared(false)
        let guarantee = Guarantee<Int> {
            begin.fulfill()
            while !Task.isCancelled { await Task.yield() }
            ended.change { $0 = true }
            return 1
        }
        var calls = 0
        guarantee.done { _ in calls += 1 }
        let seenAsPromise = guarantee.asPromise().map { $0 }
        try hang(began, timeout: patience)
        guarantee.cancel()
        try loop.run()
        expect(ended.value && calls == 0)
        expectEqual(guarantee.settledValue, nil)
        expect(seenAsPromise.error as? PromiseError == .cancelled)
    }

    private static func doubled(_ number: Int) async -> Int {
        await Task.yield()
        return number * 2
    }
}
