@testable import Promises
@testable import PromisesTestSupport

/// One thread cancels a promise while the promise's own thread lets it settle as the one that a handler has returned.
/// Under ThreadSanitizer.
struct CancellationMeetsAdoptionTests {
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
        box.value?.core.cancelIfUnobserved()
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
}
