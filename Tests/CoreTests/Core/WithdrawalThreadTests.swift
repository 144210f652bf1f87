@testable import Promises
@testable import PromisesTestSupport

/// One thread withdraws waiters from an operator's promise while the promise's own thread settles it. Under
/// ThreadSanitizer.
struct WithdrawalThreadTests {
    @Test func aHangIsTimedOut() throws {
        try whileItSettles { mapped, settler in
            for _ in 0..<200 where mapped.isPending { _ = try? hang(mapped, timeout: .zero) }
            settler.join()
        }
    }

    @Test func handlersAreCancelled() throws {
        try whileItSettles { mapped, settler in
            try EventLoop.withLoop { loop throws in
                for _ in 0..<400 { mapped.map { $0 }.cancel() }
                settler.join()
                try loop.turn(.poll)
            }
        }
    }

    @Test func theirPlacesDoNotPileUp() {
        let box = Shared<Promise<Int>?>(nil)
        let (isThere, isCancelled, isSwept, isCounted) = (Gate(), Gate(), Gate(), Gate())
        let owner = TestThread {
            let (promise, resolver) = Promise<Int>.pending()
            box.change { $0 = promise.map { $0 } }
            isThere.open()
            isCancelled.wait()
            try? EventLoop.current.turn(.poll)
            isSwept.open()
            isCounted.wait()
            resolver.fulfill(1)
        }
        isThere.wait()
        let places = (0..<1000).compactMap { _ in
            box.value.map { source in
                let promise = source.map { $0 + 1 }
                promise.cancel()
                return WeakCore(promise.core)
            }
        }
        isCancelled.open()
        isSwept.wait()
        expect(places.count { $0.core != nil } < 100)
        isCounted.open()
        owner.join()
    }

    /// `body` joins the thread.
    private func whileItSettles(_ body: (Promise<Int>, TestThread) throws -> Void) throws {
        for _ in 0..<100 {
            let box = Shared<Promise<Int>?>(nil)
            let isThere = Gate()
            let settler = TestThread {
                let (promise, resolver) = Promise<Int>.pending()
                let mapped = promise.map { $0 + 1 }
                box.change { $0 = mapped }
                isThere.open()
                // A little later, so that the two sides meet.
                for _ in 0..<200 { sched_yield() }
                resolver.fulfill(1)
                while mapped.isPending || EventLoop.current.isReady { try? EventLoop.current.turn(.poll) }
            }
            isThere.wait()
            try body(box.value!, settler)
        }
    }
}
