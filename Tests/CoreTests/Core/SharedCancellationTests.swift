@testable import Promises
@testable import PromisesTestSupport

/// Cancelling shared promises: by two handlers that return one, by threads, and by long or nested rows.
struct SharedCancellationTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func sharedSourcesAreCancelledInTheirOrder() throws {
        var stopped: [Int] = []
        let sources = (0..<12).map { _ in Promise<Int>.pending() }
        for (number, source) in sources.enumerated() { source.resolver.onCancel { stopped.append(number) } }
        when(fulfilled: sources.flatMap { [$0.promise.map { $0 }, $0.promise.map { -$0 }] }).cancel()
        try loop.run()
        expectEqual(stopped, Array(0..<12))
        withExtendedLifetime(sources) {}
    }

    @Test(.inLoop) func aHangElsewhereOnAPromiseWhoseSourceGoesOn() throws {
        let box = Shared<Promise<Int>?>(nil)
        let isThere = Gate()
        let owner = TestThread {
            let (source, resolver) = Promise<Int>.pending()
            let shared = source.map { $0 + 1 }
            let alice = Promise.value(0).then { _ in shared }
            try? EventLoop.current.turn(.poll)
            box.change { $0 = alice }
            isThere.open()
            // Until the other thread hangs on it.
            while !alice.core.root.isWanted(besides: nil) { sched_yield() }
            let bob = shared.map { $0 }
            alice.cancel()
            try? EventLoop.current.turn(.poll)
            resolver.fulfill(1)
            expectEqual((try? hang(bob)), 2)
        }
        isThere.wait()
        EventLoop.withLoop { loop in
            // It was woken by the cancellation, not by its time limit.
            expect(box.value!, failsWith: PromiseError.cancelled)
            expectEqual(loop.metrics.timersFired, 0)
        }
        owner.join()
    }

    /// The clean-up in progress still waits for it.
    @Test(.inLoop) func aCleanUpGoesOnWhenAllOthersWithdraw() throws {
        let cleanUp = after(.seconds(1)).done {}
        let cleaned = Promise.value(1).ensureThen { cleanUp }
        try loop.turn(.poll)
        cleaned.cancel()
        when(guarantees: [cleanUp.map { 1 }, cleanUp.map { 2 }]).cancel()
        try loop.run()
        expect(cleanUp.isFulfilled && cleaned.isCancelled)
    }

    @Test(.inLoop) func theLatestMayWithdrawFirst() throws {
        let (source, resolver) = Promise<Int>.pending()
        let all = (0..<2000).map { number in source.map { $0 + number } }
        for promise in all.dropFirst(1000).reversed() { promise.cancel() }
        // Each looks for a remaining waiter, and must not visit all that have withdrawn before.
        expect(waiterCount(of: source) < 1020)
        resolver.fulfill(1)
        try loop.run()
        let values = all.compactMap(\.settledValue)
        expectEqual(values, Array(1...1000))
    }

    /// Neither handlers that are cancelled there nor hangs that time out leave anything in the list, and the promise
    /// goes on.
    @Test(.inLoop) func anotherThreadWithdraws() throws {
        let (source, resolver) = Promise<Int>.pending()
        let shared = source.map { $0 }
        let kept = shared.map { $0 }
        TestThread.run { for _ in 0..<200 { shared.map { $0 }.cancel() } }
        try loop.turn(.poll)
        TestThread.run {
            let hold = EventLoop.current.hold()
            for _ in 0..<200 { _ = try? hang(shared, timeout: .zero) }
            hold.cancel()
        }
        try loop.turn(.poll)
        expect(waiterCount(of: shared) < 40 && kept.isPending)
        resolver.fulfill(1)
        expect(kept, gives: 1)
    }
}
