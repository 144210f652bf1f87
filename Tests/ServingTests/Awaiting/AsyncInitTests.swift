@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

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

    @Test(.inRealTime) func cancellingCancelsTheTask() throws {
        let (began, ended) = (Gate(), Shared(0))
        let body = { @Sendable () async -> Int in
            began.open()
            while !Task.isCancelled { await Task.yield() }
            ended.change { $0 += 1 }
            return 1
        }
        let (promise, guarantee) = (Promise(async: body), Guarantee(async: body))
        var calls = 0
        guarantee.done { _ in calls += 1 }
        let seenAsPromise = guarantee.asPromise().map { $0 }
        began.wait(2)
        promise.cancel()
        expect(promise, failsWith: PromiseError.cancelled)
        expectEqual(ended.value, 1)
        guarantee.cancel()
        try EventLoop.current.run()
        expect(ended.value == 2 && calls == 0)
        expectEqual(guarantee.settledValue, nil)
        expect(seenAsPromise.error as? PromiseError == .cancelled)
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

    @TaskLocal private static var request = "none"

    @Test(.inRealTime, arguments: [false, true]) func theBodyHasTheTaskLocalValuesOfItsCaller(isInTask: Bool) throws {
        let seen = Shared<[String]>([])
        let note: @Sendable () async -> Void = {
            seen.change { $0.append(Self.request) }
            await Task.yield()
            seen.change { $0.append(Self.request) }
        }
        @Sendable func begin() -> Promise<Void> {
            Self.$request.withValue("a") { when(fulfilled: Promise(async: note), Guarantee(async: note).asPromise()) }
                .then { _ in Self.$request.withValue("b") { Promise(on: .current, async: note) } }
        }
        if isInTask {
            try EventLoop.current.run { try await Self.$request.withValue("c") { try await firstly { begin() }.value } }
        } else {
            try hang(begin())
        }
        expectEqual(seen.value.sorted(), ["a", "a", "a", "a", "b", "b"])
    }

    /// The body must not wait for the actor, which waits for the body.
    @Test(.inRealTime) func theBodyDoesNotBelongToTheActorOfItsCaller() throws {
        actor Waiter {
            private let home: LoopRemote
            nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }
            init(_ home: LoopRemote) { self.home = home }
            func wait() throws -> Int { try hang(Promise { await AsyncInitTests.doubled(1) }, timeout: patience) }
        }
        let waiter = Waiter(EventLoop.current.remote)
        expectEqual(try EventLoop.current.run { try await waiter.wait() }, 2)
    }

    fileprivate static func doubled(_ number: Int) async -> Int {
        await Task.yield()
        return number * 2
    }
}
