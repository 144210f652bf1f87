import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

extension APlusTests {
    /// 2.2.6
    @Suite struct SeveralHandlersTests {
        @Test("2.2.6.1 handlers of a fulfilled promise run in the order of the calls", arguments: Setting.all)
        func inOrderIfFulfilled(setting: Setting) throws {
            var calls: [String] = []
            try setting.run(.success(1)) { promise in
                for round in 0..<2 {
                    for operation in OnFulfilled.allCases {
                        operation.attach(to: promise) { _ in calls.append("\(round) \(operation)") }
                        // One for the other outcome between them.
                        OnRejected.catch.attach(to: promise) { _ in calls.append("rejected") }
                    }
                }
            }
            let expected = (0..<2).flatMap { round in OnFulfilled.allCases.map { "\(round) \($0)" } }
            expectEqual(calls, expected)
        }

        @Test("2.2.6.1 handlers of a guarantee run in the order of the calls", arguments: Setting.all)
        func inOrderOfAGuarantee(setting: Setting) throws {
            var calls: [String] = []
            try setting.run(1) { guarantee in
                for round in 0..<2 {
                    for operation in OnGuaranteed.allCases {
                        operation.attach(to: guarantee) { _ in calls.append("\(round) \(operation)") }
                    }
                }
            }
            let expected = (0..<2).flatMap { round in OnGuaranteed.allCases.map { "\(round) \($0)" } }
            expectEqual(calls, expected)
        }

        @Test("2.2.6.2 handlers of a rejected promise run in the order of the calls", arguments: Setting.all)
        func inOrderIfRejected(setting: Setting) throws {
            var calls: [String] = []
            try setting.run(.failure(Flaw())) { promise in
                for round in 0..<2 {
                    for operation in OnRejected.allCases {
                        operation.attach(to: promise) { _ in calls.append("\(round) \(operation)") }
                        OnFulfilled.done.attach(to: promise) { _ in calls.append("fulfilled") }
                    }
                }
            }
            let expected = (0..<2).flatMap { round in OnRejected.allCases.map { "\(round) \($0)" } }
            expectEqual(calls, expected)
        }

        @Test("2.2.6.1 in order also if some throw, each with a result of its own", arguments: Setting.all)
        func someThrowIfFulfilled(setting: Setting) throws {
            var calls: [Int] = []
            var results: [Promise<Int>] = []
            try setting.run(.success(1)) { promise in
                for index in 0..<6 {
                    results.append(
                        promise.map { value in
                            calls.append(index)
                            if index % 2 == 1 { throw Flaw(index) }
                            return value + index
                        })
                }
            }
            expectEqual(calls, [0, 1, 2, 3, 4, 5])
            let values = results.map(\.settledValue)
            expectEqual(values, [1, nil, 3, nil, 5, nil])
            let flaws = results.map(\.flaw)
            expectEqual(flaws, [nil, Flaw(1), nil, Flaw(3), nil, Flaw(5)])
        }

        @Test("2.2.6.2 in order also if some throw, each with a result of its own", arguments: Setting.all)
        func someThrowIfRejected(setting: Setting) throws {
            var calls: [Int] = []
            var results: [Promise<Int>] = []
            try setting.run(.failure(Flaw(100))) { promise in
                for index in 0..<6 {
                    results.append(
                        promise.recover { _ throws -> Promise<Int> in
                            calls.append(index)
                            if index % 2 == 1 { throw Flaw(index) }
                            return .value(index)
                        })
                }
            }
            expectEqual(calls, [0, 1, 2, 3, 4, 5])
            let values = results.map(\.settledValue)
            expectEqual(values, [0, nil, 2, nil, 4, nil])
            let flaws = results.map(\.flaw)
            expectEqual(flaws, [nil, Flaw(1), nil, Flaw(3), nil, Flaw(5)])
        }

        @Test("2.2.6.1 one that is attached in a handler comes after all that wait", arguments: Setting.all)
        func attachedInsideIfFulfilled(setting: Setting) throws {
            for operation in OnFulfilled.allCases {
                var calls: [Int] = []
                try setting.run(.success(1)) { promise in
                    operation.attach(to: promise) { _ in
                        calls.append(0)
                        for index in 3..<5 {
                            operation.attach(to: promise) { _ in
                                calls.append(index)
                                operation.attach(to: promise) { _ in calls.append(index + 2) }
                            }
                        }
                    }
                    for index in 1..<3 { operation.attach(to: promise) { _ in calls.append(index) } }
                }
                expectEqual(calls, [0, 1, 2, 3, 4, 5, 6], "\(operation)")
            }
        }

        @Test("2.2.6.2 one that is attached in a handler comes after all that wait", arguments: Setting.all)
        func attachedInsideIfRejected(setting: Setting) throws {
            for operation in OnRejected.allCases {
                var calls: [Int] = []
                try setting.run(.failure(Flaw())) { promise in
                    operation.attach(to: promise) { _ in
                        calls.append(0)
                        for index in 3..<5 {
                            operation.attach(to: promise) { _ in
                                calls.append(index)
                                operation.attach(to: promise) { _ in calls.append(index + 2) }
                            }
                        }
                    }
                    for index in 1..<3 { operation.attach(to: promise) { _ in calls.append(index) } }
                }
                expectEqual(calls, [0, 1, 2, 3, 4, 5, 6], "\(operation)")
            }
        }

        @Test("2.2.6 in order, whether attached before, during or after the settlement", arguments: Kind.allCases)
        func beforeDuringAndAfter(kind: Kind) throws {
            for outcome in [Result<Int, any Error>.success(1), .failure(Flaw())] {
                try inLoop { loop throws in
                    let (promise, resolver) = try kind.make(loop) as (Promise<Int>, Resolver<Int>)
                    var calls: [Int] = []
                    func attach(_ index: Int) { promise.ensure { calls.append(index) }.ignoringErrors() }
                    attach(0)
                    attach(1)
                    resolver.resolve(outcome)
                    attach(2)
                    loop.enqueue { attach(3) }
                    loop.schedule(after: .seconds(1)) { attach(4) }
                    try loop.run()
                    expectEqual(calls, [0, 1, 2, 3, 4])
                }
            }
        }

        @Test("2.2.6 the handlers of one branch do not disturb those of another", arguments: Setting.all)
        func branches(setting: Setting) throws {
            var seen: [String] = []
            try setting.run(.success(1)) { promise in
                promise.map { $0 + 1 }.map { $0 + 1 }.done { seen.append("\($0)") }.orFail()
                promise.map { _ -> Int in throw Flaw(9) }.catch { seen.append("\($0)") }
                promise.done { seen.append("\($0)") }.orFail()
            }
            expectEqual(seen, ["1", "Flaw(number: 9)", "3"])
        }
    }
}
