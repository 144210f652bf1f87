@testable import PromisesTestSupport

/// `after(seconds:)`, `wait()` and `async()`.
struct WaitingTests {
    @Test(.inLoop) func aGuaranteeThrowsNothing() {
        let loop = EventLoop.current
        let number = after(seconds: 0.25).map { 5 }
        expectEqual(number.wait(), 5)
        expectEqual(loop.now.nanoseconds, 250_000_000)
    }

    @Test(.inRealTime) func aPromiseMayThrow() throws {
        expectEqual(try Promise.value(4).wait(), 4)
        #expect(throws: Flaw(1)) { try Promise<Int>(error: Flaw(1)).wait() }
    }

    @Test(.inLoop) func anyNumberOfSecondsIsADelay() throws {
        let loop = EventLoop.current
        for seconds in [Double.infinity, 1e40, .greatestFiniteMagnitude] {
            expect(after(seconds: seconds).isPending)
        }
        for seconds in [-Double.infinity, .nan, -1, 0] {
            let soon = after(seconds: seconds)
            try loop.turn(.poll)
            expect(soon.isFulfilled)
        }
    }

    @Test func inAsyncFunctions() async throws {
        expectEqual(try await Promise.value(3).async(), 3)
        expectEqual(await Guarantee.value("x").async(), "x")
    }
}

/// `async(.promise)`.
struct NamespacerTests {
    private let pool = ThreadPool.shared

    private func failing() throws -> Int { throw Flaw(1) }

    @Test(.inLoop) func aClosureThatThrowsGivesAPromise() {
        expect(pool.async(.promise) { try failing() }, failsWith: Flaw(1))
        let asked: Promise<Int> = pool.async(.promise) { 3 }
        expect(asked, gives: 3)
        let dispatchers: [any Dispatcher] = [Immediate(), pool]
        for dispatcher in dispatchers {
            expect(dispatcher.async(.promise) { () throws -> Int in 4 }, gives: 4)
        }
    }

    @Test(.inLoop) func oneThatDoesNotGivesAGuarantee() {
        let sure = pool.async(.promise) { 5 }
        expect(type(of: sure) == Guarantee<Int>.self)
        expect(sure, gives: 5)
        let ran = Gate()
        pool.async(.promise) { ran.open() }
        ran.wait()
    }
}
