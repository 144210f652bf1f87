@testable import PromisesTestSupport

struct HangCancellationTests {
    @Test(.inLoop) func aHandlerThatCancelsEndsTheHang() throws {
        let loop = EventLoop.current
        let promise = after(.seconds(3600)).asPromise().map { 1 }
        after(.seconds(1)).done { promise.cancel() }
        expect(promise, failsWith: PromiseError.cancelled)
        expect(loop.now.nanoseconds == 1_000_000_000 && loop.nextDeadline == nil)
    }

    @Test(.inLoop) func aTimeLimitOnTheHangDoesNot() throws {
        let loop = EventLoop.current
        let work = after(.seconds(10)).map { 1 }
        var isLate = false
        do { _ = try hang(work, timeout: .seconds(2)) } catch { isLate = error as? PromiseError == .timedOut }
        expect(isLate && work.isPending)
        expectEqual(hang(work), 1)
        expectEqual(loop.now.nanoseconds, 10_000_000_000)
    }

    @Test(.inLoop) func aHangThatHasEndedListensNoMore() throws {
        let loop = EventLoop.current
        let work = after(.seconds(10)).map { 1 }
        _ = try? hang(work, timeout: .seconds(2))
        let child = work.map { $0 }
        child.cancel()
        expectEqual(loop.nextDeadline, nil)
    }

    @Test(.inLoop) func aNestedHangKeepsWhatItWaitsFor() throws {
        let loop = EventLoop.current
        let shared = after(.seconds(5)).map { 8 }
        let child = shared.map { $0 + 1 }
        var seen = 0
        after(.seconds(1)).done {
            after(.seconds(1)).done { child.cancel() }
            seen = hang(shared)
        }
        hang(after(.seconds(20)))
        expect(seen == 8 && child.isPending && shared.isFulfilled)
        expectEqual(loop.now.nanoseconds, 20_000_000_000)
    }

    @Test(.inRealTime) func anotherThreadMayCancelWhatAHangWaitsFor() throws {
        let promise = after(.seconds(3600)).asPromise().map { 1 }
        let thread = TestThread { promise.cancel() }
        expect(promise, failsWith: PromiseError.cancelled)
        thread.join()
    }
}
