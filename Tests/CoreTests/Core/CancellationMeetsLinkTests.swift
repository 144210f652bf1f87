import Reactor
import TestSupport
import Testing

@testable import Promises
@testable import PromisesTestSupport

/// A cancellation on one thread while the promise's own thread links it to that of the handler which has returned it. Under
/// ThreadSanitizer.
@Suite struct CancellationMeetsLinkTests {
    /// As if the link had been made after the canceller had looked for the root.
    @Test func itIsTriedAgainAtTheRoot() {
        let box = Shared<Promise<Int>?>(nil)
        let (isLinked, isCancelled) = (Gate(), Gate())
        let owner = TestThread {
            let (source, resolver) = Promise<Int>.pending()
            let inner = source.map { $0 }
            let outer = Promise.value(0).then { _ in inner }
            try? EventLoop.current.turn(.poll)
            box.change { $0 = inner }
            isLinked.open()
            isCancelled.wait()
            try? EventLoop.current.turn(.poll)
            expect(outer.error as? PromiseError == .cancelled && source.isRejected)
            withExtendedLifetime(resolver) {}
        }
        isLinked.wait()
        if let inner = box.value {
            expect(inner.core.root !== inner.core)
            inner.core.cancel(.itself(nil))
        }
        isCancelled.open()
        owner.join()
    }

    @Test func whatIsOnlyNotWantedGoesOnForTheHandler() {
        let box = Shared<Promise<Int>?>(nil)
        let (isLinked, isCancelled) = (Gate(), Gate())
        let owner = TestThread {
            let (source, resolver) = Promise<Int>.pending()
            let inner = source.map { $0 }
            let outer = Promise.value(0).then { _ in inner }
            try? EventLoop.current.turn(.poll)
            box.change { $0 = inner }
            isLinked.open()
            isCancelled.wait()
            resolver.fulfill(1)
            expect(outer, gives: 1)
        }
        isLinked.wait()
        box.value?.core.cancelIfUnobserved()
        isCancelled.open()
        owner.join()
    }

    @Test func whicheverComesFirst() {
        let box = Shared<Promise<Int>?>(nil)
        let (isThere, isCancelled) = (Gate(), Gate())
        let rounds = scaled(10_000)
        let owner = TestThread {
            for _ in 0..<rounds {
                let (source, resolver) = Promise<Int>.pending()
                let inner = source.map { $0 }
                let outer = Promise.value(0).then { _ in inner }
                box.change { $0 = inner }
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
