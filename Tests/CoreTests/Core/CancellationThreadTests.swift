@testable import Promises
@testable import PromisesTestSupport

/// A promise is cancelled while another thread settles it, or lets it settle as the one that a handler has returned.
/// Under ThreadSanitizer.
struct CancellationThreadTests {
    @Test func whatIsOnlyNotWantedGoesOnForTheHandler() {
        let box = Shared<Promise<Int>?>(nil)
        let (isAdopted, isCancelled) = (Gate(), Gate())
        let owner = TestThread {
            let (source, resolver) = Promise<Int>.pending()
            let inner = source.map { $0 }
            let outer = Promise.value(0).then { _ in inner }
            try? EventLoop.current.turn(.poll)
            box.change { $0 = inner }
            isAdopted.open()
            isCancelled.wait()
            resolver.fulfill(1)
            expect(outer, gives: 1)
        }
        isAdopted.wait()
        box.value?.core.cancelUnlessWanted()
        isCancelled.open()
        owner.join()
    }

    /// - Parameter isOuter: true if the outer promise is cancelled. Nothing else holds the inner one then, and it is
    ///   linked.
    @Test(arguments: [false, true]) func whicheverComesFirst(isOuter: Bool) {
        let box = Shared<Promise<Int>?>(nil)
        let (isThere, isCancelled) = (Gate(), Gate())
        let rounds = scaled(10_000)
        let owner = TestThread {
            for _ in 0..<rounds {
                let (source, resolver) = Promise<Int>.pending()
                let outer =
                    if isOuter {
                        Promise.value(0).then { _ in source.map { $0 } }
                    } else {
                        { (inner: Promise<Int>) in
                            box.change { $0 = inner }
                            return Promise.value(0).then { _ in inner }
                        }(source.map { $0 })
                    }
                if isOuter { box.change { $0 = outer } }
                isThere.open()
                try? EventLoop.current.turn(.poll)
                isCancelled.wait()
                try? EventLoop.current.turn(.poll)
                expect(outer.error as? PromiseError == .cancelled)
                withExtendedLifetime(resolver) {}
            }
        }
        for _ in 0..<rounds {
            isThere.wait()
            box.value?.cancel()
            isCancelled.open()
        }
        owner.join()
    }

    /// A loop that ends releases objects that cancel promises, while another thread settles the sources of these.
    @Test func atTheEndOfALoopAgainstASettlementElsewhere() {
        for _ in 0..<scaled(2000) {
            let (promise, resolver) = Promise<Int>.pending()
            let isReady = Gate()
            let thread = TestThread {
                for _ in 0..<20 {
                    let mapped = promise.map { $0 + 1 }
                    let words = LastWords { mapped.cancel() }
                    EventLoop.current.enqueue { words.use() }
                }
                isReady.open()
            }
            isReady.wait()
            resolver.fulfill(1)
            thread.join()
        }
    }
}

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
