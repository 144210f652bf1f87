import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct HandlerOrderTests {
    @Test func ofOnePromiseInTheOrderOfAttachingWhateverTheOperators() throws {
        try inLoop { loop throws in
            var order: [Int] = []
            func attachAll(to promise: Promise<Int>) {
                promise.done { _ in order.append(0) }.ignoringErrors()
                promise.map { _ in order.append(1) }.ignoringErrors()
                promise.tap { _ in order.append(2) }.ignoringErrors()
                promise.ensure { order.append(3) }.ignoringErrors()
                promise.catch { _ in order.append(4) }
                promise.then { _ -> Promise<Void> in
                    order.append(5)
                    return .value
                }.ignoringErrors()
                promise.recover { _ -> Promise<Int> in
                    order.append(6)
                    return .value(1)
                }.ignoringErrors()
                promise.get { _ in order.append(7) }.ignoringErrors()
            }
            let (fulfilled, resolver) = Promise<Int>.pending()
            attachAll(to: fulfilled)
            resolver.fulfill(1)
            try loop.run()
            expectEqual(order, [0, 1, 2, 3, 5, 7])
            order = []
            let (rejected, rejecter) = Promise<Int>.pending()
            attachAll(to: rejected)
            rejecter.reject(Flaw())
            try loop.run()
            expectEqual(order, [2, 3, 4, 6])
            order = []
            attachAll(to: .value(1))
            try loop.run()
            expectEqual(order, [0, 1, 2, 3, 5, 7])
        }
    }

    @Test func neverInsideTheCallThatAttaches() throws {
        try inLoop { loop throws in
            var calls = 0
            Promise.value(1).done { _ in calls += 1 }.orFail()
            Promise<Int>(error: Flaw()).catch { _ in calls += 1 }
            Promise<Int>(error: Flaw()).tap { _ in calls += 1 }.ignoringErrors()
            Promise<Int>(error: Flaw()).ensure { calls += 1 }.ignoringErrors()
            Promise<Void>(error: Flaw()).tap { _ in calls += 1 }.cauterize()
            Promise.value(1).catch { _ in }.finally { calls += 1 }
            Guarantee.value(1).done { _ in calls += 1 }
            expectEqual(calls, 0)
            try loop.run()
            expectEqual(calls, 7)
        }
    }

    @Test func neverInsideTheCallThatSettles() throws {
        try inLoop { loop throws in
            var calls = 0
            let (promise, resolver) = Promise<Int>.pending()
            promise.done { _ in calls += 1 }.orFail()
            resolver.fulfill(1)
            expectEqual(calls, 0)
            let (failing, failer) = Promise<Int>.pending()
            failing.map { $0 }.map { $0 }.catch { _ in calls += 1 }
            failer.reject(Flaw())
            expectEqual(calls, 0)
            try loop.run()
            expectEqual(calls, 2)
        }
    }

    @Test func neverInsideAnotherHandler() throws {
        try inLoop { loop throws in
            var depth = 0
            var deepest = 0
            func handler(_ step: Int) -> Promise<Void> {
                depth += 1
                deepest = max(deepest, depth)
                defer { depth -= 1 }
                let (promise, resolver) = Promise<Int>.pending()
                let next = promise.then { step == 0 ? Promise.value : handler($0) }
                resolver.fulfill(step - 1)
                return next
            }
            try hang(handler(10))
            expectEqual(deepest, 1)
        }
    }

    @Test func oneAttachedInAHandlerComesAfterThoseThatWaitAlready() throws {
        try inLoop { loop throws in
            var order: [Int] = []
            let (promise, resolver) = Promise<Int>.pending()
            promise.done { _ in
                order.append(1)
                promise.done { _ in order.append(3) }.orFail()
            }.orFail()
            promise.done { _ in order.append(2) }.orFail()
            resolver.fulfill(1)
            try loop.run()
            expectEqual(order, [1, 2, 3])
        }
    }

    @Test func attachedBeforeAndAfterSettling() throws {
        try inLoop { loop throws in
            var order: [Int] = []
            let (promise, resolver) = Promise<Int>.pending()
            promise.done { _ in order.append(1) }.orFail()
            resolver.fulfill(1)
            promise.done { _ in order.append(2) }.orFail()
            try loop.run()
            promise.done { _ in order.append(3) }.orFail()
            try loop.run()
            expectEqual(order, [1, 2, 3])
        }
    }

    @Test func acrossPromisesInTheOrderOfSettling() throws {
        try inLoop { loop throws in
            var order: [Int] = []
            let pairs = (0..<4).map { _ in Promise<Int>.pending() }
            for (index, pair) in pairs.enumerated() { pair.promise.done { _ in order.append(index) }.orFail() }
            for index in [2, 0, 3, 1] { pairs[index].resolver.fulfill(index) }
            try loop.run()
            expectEqual(order, [2, 0, 3, 1])
        }
    }

    @Test func handlersAndJobsShareOneQueue() throws {
        try inLoop { loop throws in
            var order: [Int] = []
            loop.enqueue { order.append(0) }
            Promise.value(1).done { _ in order.append(1) }.orFail()
            loop.enqueue { order.append(2) }
            Promise<Int>(error: Flaw()).catch { _ in order.append(3) }
            try loop.run()
            expectEqual(order, [0, 1, 2, 3])
        }
    }

    @Test func ofAPromiseThatAHandlerHasReturnedBeforeThoseBehindTheHandler() throws {
        try inLoop { loop throws in
            var order: [Int] = []
            let (source, resolver) = Promise<Int>.pending()
            let inner = source.map { $0 }
            let outer = Promise.value(()).then { inner }
            outer.done { _ in order.append(0) }.orFail()
            try loop.run()
            inner.done { _ in order.append(1) }.orFail()
            outer.done { _ in order.append(2) }.orFail()
            inner.done { _ in order.append(3) }.orFail()
            resolver.fulfill(1)
            try loop.run()
            expectEqual(order, [1, 3, 0, 2])
        }
    }

    @Test func chainsTakeTurns() throws {
        try inLoop { loop throws in
            var order: [String] = []
            for name in ["a", "b"] {
                Promise.value(()).map { order.append("\(name)1") }.map { order.append("\(name)2") }
                    .done { order.append("\(name)3") }.orFail()
            }
            try loop.run()
            expectEqual(order, ["a1", "b1", "a2", "b2", "a3", "b3"])
        }
    }
}
