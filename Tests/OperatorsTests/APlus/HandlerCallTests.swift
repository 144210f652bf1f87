import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

extension APlusTests {
    /// 2.2.2 and 2.2.3
    @Suite struct HandlerCallTests {
        @Test(
            "2.2.2.1 onFulfilled is called after the promise is fulfilled, with its value",
            arguments: Setting.all, OnFulfilled.allCases)
        func withTheValue(setting: Setting, operation: OnFulfilled) throws {
            var calls: [String] = []
            try setting.run(.success(7)) { promise in
                operation.attach(to: promise) { calls.append("\($0) \(promise.isFulfilled)") }
            }
            expectEqual(calls, ["7 true"])
        }

        @Test("2.2.2.1 a guarantee's handler, called once fulfilled", arguments: Setting.all, OnGuaranteed.allCases)
        func ofAGuarantee(setting: Setting, operation: OnGuaranteed) throws {
            var calls: [String] = []
            try setting.run(7) { guarantee in
                operation.attach(to: guarantee) { calls.append("\($0) \(guarantee.isFulfilled)") }
            }
            expectEqual(calls, ["7 true"])
        }

        @Test(
            "2.2.2.2 onFulfilled is not called before the promise is fulfilled",
            arguments: Setting.all, OnFulfilled.allCases)
        func notBeforeItIsFulfilled(setting: Setting, operation: OnFulfilled) throws {
            var calls = 0
            var early = -1
            try setting.run(.success(7), beforeSettling: { early = calls }) { promise in
                operation.attach(to: promise) { _ in calls += 1 }
            }
            expect(early <= 0)
            expectEqual(calls, 1)
        }

        @Test("2.2.2.2 onFulfilled of a promise that is never fulfilled", arguments: OnFulfilled.allCases)
        func neverFulfilled(operation: OnFulfilled) throws {
            try inLoop { loop throws in
                let (promise, resolver) = Promise<Int>.pending()
                var calls = 0
                operation.attach(to: promise) { _ in calls += 1 }
                loop.schedule(after: .seconds(1)) {}
                for _ in 0..<3 { try loop.turn(.poll) }
                expectEqual(calls, 0)
                resolver.reject(Flaw())
                try loop.run()
                expectEqual(calls, 0)
            }
        }

        @Test(
            "2.2.2.3 onFulfilled is not called more than once, however often the promise is settled",
            arguments: Settling.allCases, OnFulfilled.allCases)
        func onceIfFulfilledOften(settling: Settling, operation: OnFulfilled) throws {
            try inLoop { loop throws in
                let (promise, resolver) = Promise<Int>.pending()
                var calls: [Int] = []
                let settle = { for value in 1...3 { resolver.fulfill(value) } }
                try settling.run(loop, settle: settle) { operation.attach(to: promise) { calls.append($0) } }
                settle()
                loop.enqueue(settle)
                loop.schedule(after: .seconds(1), settle)
                try loop.run()
                expectEqual(calls, [1])
            }
        }

        @Test("2.2.2.3 onFulfilled of several calls, once each", arguments: Setting.all, OnFulfilled.allCases)
        func onceEachAtSeveralTimes(setting: Setting, operation: OnFulfilled) throws {
            var calls = [0, 0, 0]
            try setting.run(.success(7)) { promise in
                for index in 0..<2 { operation.attach(to: promise) { _ in calls[index] += 1 } }
                EventLoop.current.schedule(after: .seconds(2)) {
                    operation.attach(to: promise) { _ in calls[2] += 1 }
                }
            }
            expectEqual(calls, [1, 1, 1])
        }

        @Test(
            "2.2.2 onFulfilled is not called if the promise is rejected", arguments: Setting.all, OnFulfilled.allCases)
        func notIfRejected(setting: Setting, operation: OnFulfilled) throws {
            var calls = 0
            try setting.run(.failure(Flaw())) { promise in operation.attach(to: promise) { _ in calls += 1 } }
            expectEqual(calls, 0)
        }

        @Test(
            "2.2.3.1 onRejected is called after the promise is rejected, with its reason",
            arguments: Setting.all, OnRejected.allCases)
        func withTheReason(setting: Setting, operation: OnRejected) throws {
            let thing = Thing()
            var calls: [Bool] = []
            try setting.run(.failure(thing)) { promise in
                operation.attach(to: promise) { calls.append($0 as? Thing === thing && promise.isRejected) }
            }
            expectEqual(calls, [true])
        }

        @Test(
            "2.2.3.2 onRejected is not called before the promise is rejected",
            arguments: Setting.all, OnRejected.allCases)
        func notBeforeItIsRejected(setting: Setting, operation: OnRejected) throws {
            var calls = 0
            var early = -1
            try setting.run(.failure(Flaw()), beforeSettling: { early = calls }) { promise in
                operation.attach(to: promise) { _ in calls += 1 }
            }
            expect(early <= 0)
            expectEqual(calls, 1)
        }

        @Test("2.2.3.2 onRejected of a promise that is never rejected", arguments: OnRejected.allCases)
        func neverRejected(operation: OnRejected) throws {
            try inLoop { loop throws in
                let (promise, resolver) = Promise<Int>.pending()
                var calls = 0
                operation.attach(to: promise) { _ in calls += 1 }
                loop.schedule(after: .seconds(1)) {}
                for _ in 0..<3 { try loop.turn(.poll) }
                expectEqual(calls, 0)
                resolver.fulfill(1)
                try loop.run()
                expectEqual(calls, 0)
            }
        }

        @Test(
            "2.2.3.3 onRejected is not called more than once, however often the promise is settled",
            arguments: Settling.allCases, OnRejected.allCases)
        func onceIfRejectedOften(settling: Settling, operation: OnRejected) throws {
            try inLoop { loop throws in
                let (promise, resolver) = Promise<Int>.pending()
                var calls: [Flaw?] = []
                let settle = { for number in 1...3 { resolver.reject(Flaw(number)) } }
                try settling.run(loop, settle: settle) {
                    operation.attach(to: promise) { calls.append($0 as? Flaw) }
                }
                settle()
                loop.enqueue(settle)
                loop.schedule(after: .seconds(1), settle)
                try loop.run()
                expectEqual(calls, [Flaw(1)])
            }
        }

        @Test("2.2.3.3 onRejected of several calls, once each", arguments: Setting.all, OnRejected.allCases)
        func onceEachAtSeveralTimesIfRejected(setting: Setting, operation: OnRejected) throws {
            var calls = [0, 0, 0]
            try setting.run(.failure(Flaw())) { promise in
                for index in 0..<2 { operation.attach(to: promise) { _ in calls[index] += 1 } }
                EventLoop.current.schedule(after: .seconds(2)) {
                    operation.attach(to: promise) { _ in calls[2] += 1 }
                }
            }
            expectEqual(calls, [1, 1, 1])
        }

        @Test("2.2.3 onRejected is not called if the promise is fulfilled", arguments: Setting.all, OnRejected.allCases)
        func notIfFulfilled(setting: Setting, operation: OnRejected) throws {
            var calls = 0
            try setting.run(.success(1)) { promise in operation.attach(to: promise) { _ in calls += 1 } }
            expectEqual(calls, 0)
        }

        @Test("2.2.2, 2.2.3 of a pair of handlers one is called", arguments: Setting.all)
        func oneOfAPair(setting: Setting) throws {
            for outcome in [Result<Int, any Error>.success(1), .failure(Flaw())] {
                var calls: [String] = []
                try setting.run(outcome) { promise in
                    promise.done { _ in calls.append("fulfilled") }.catch { _ in calls.append("rejected") }
                    OnRejected.catch.attach(to: promise) { _ in calls.append("rejected too") }
                }
                let expected = if case .success = outcome { ["fulfilled"] } else { ["rejected too", "rejected"] }
                expectEqual(calls, expected)
            }
        }
    }
}
