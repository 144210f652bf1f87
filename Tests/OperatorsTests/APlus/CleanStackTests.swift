import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

extension APlusTests {
    /// 2.2.4
    @Suite struct CleanStackTests {
        @Test(
            "2.2.4 onFulfilled is not called inside the call that attaches or settles",
            arguments: Setting.all, OnFulfilled.allCases)
        func fulfilledNotInside(setting: Setting, operation: OnFulfilled) throws {
            var isInside = false
            var calls: [Bool] = []
            try setting.run(.success(1)) { promise in
                isInside = true
                operation.attach(to: promise) { _ in calls.append(isInside) }
                isInside = false
            }
            expectEqual(calls, [false])
        }

        @Test(
            "2.2.4 onRejected is not called inside the call that attaches or settles",
            arguments: Setting.all, OnRejected.allCases)
        func rejectedNotInside(setting: Setting, operation: OnRejected) throws {
            var isInside = false
            var calls: [Bool] = []
            try setting.run(.failure(Flaw())) { promise in
                isInside = true
                operation.attach(to: promise) { _ in calls.append(isInside) }
                isInside = false
            }
            expectEqual(calls, [false])
        }

        @Test("2.2.4 a handler runs after the code that follows the settlement", arguments: Kind.allCases)
        func afterTheCodeThatSettles(kind: Kind) throws {
            for operation in OnFulfilled.allCases {
                try checkSettling(kind, { $0.fulfill(1) }) { promise, note in
                    operation.attach(to: promise) { _ in note() }
                }
            }
            for operation in OnRejected.allCases {
                try checkSettling(kind, { $0.reject(Flaw()) }) { promise, note in
                    operation.attach(to: promise) { _ in note() }
                }
            }
        }

        private func checkSettling(
            _ kind: Kind, _ settle: @escaping (Resolver<Int>) -> Void,
            _ attach: (Promise<Int>, @escaping () -> Void) -> Void
        ) throws {
            try inLoop { loop throws in
                let (promise, resolver) = try kind.make(loop) as (Promise<Int>, Resolver<Int>)
                var order: [String] = []
                attach(promise) { order.append("handler") }
                loop.enqueue {
                    settle(resolver)
                    order.append("after settling")
                }
                try loop.run()
                expectEqual(order, ["after settling", "handler"])
            }
        }

        @Test("2.2.4 a handler that is attached in a handler runs after it", arguments: OnFulfilled.allCases)
        func attachedInAHandler(operation: OnFulfilled) throws {
            for outer in OnFulfilled.allCases {
                try inLoop { loop throws in
                    let promise = Promise.value(1)
                    var order: [String] = []
                    outer.attach(to: promise) { _ in
                        operation.attach(to: promise) { _ in order.append("inner") }
                        order.append("outer")
                    }
                    try loop.run()
                    expectEqual(order, ["outer", "inner"])
                }
            }
        }

        @Test(
            "2.2.4 a handler that is attached in a handler of a rejection runs after it", arguments: OnRejected.allCases
        )
        func attachedInAHandlerOfARejection(operation: OnRejected) throws {
            for outer in OnRejected.allCases {
                try inLoop { loop throws in
                    let promise = Promise<Int>(error: Flaw())
                    var order: [String] = []
                    outer.attach(to: promise) { _ in
                        operation.attach(to: promise) { _ in order.append("inner") }
                        order.append("outer")
                    }
                    try loop.run()
                    expectEqual(order, ["outer", "inner"])
                }
            }
        }

        @Test("2.2.4 a handler whose promise a handler settles runs after it", arguments: Kind.allCases)
        func settledInAHandler(kind: Kind) throws {
            for operation in OnFulfilled.allCases {
                try inLoop { loop throws in
                    let (promise, resolver) = try kind.make(loop) as (Promise<Int>, Resolver<Int>)
                    var order: [String] = []
                    operation.attach(to: promise) { _ in order.append("inner") }
                    operation.attach(to: .value(1)) { _ in
                        resolver.fulfill(1)
                        order.append("outer")
                    }
                    try loop.run()
                    expectEqual(order, ["outer", "inner"])
                }
            }
        }

        @Test("2.2.4 a handler runs after jobs and handlers that were queued before it, before later ones")
        func inTheQueue() throws {
            try inLoop { loop throws in
                let (promise, resolver) = Promise<Int>.pending()
                var order: [Int] = []
                promise.done { _ in order.append(2) }.orFail()
                loop.enqueue { order.append(0) }
                Promise.value(1).done { _ in order.append(1) }.orFail()
                resolver.fulfill(1)
                loop.enqueue { order.append(3) }
                promise.done { _ in order.append(4) }.orFail()
                try loop.run()
                expectEqual(order, [0, 1, 2, 3, 4])
            }
        }

        @Test("2.2.4 no handler runs inside another, and none deeper in the stack than another")
        func theStackIsClean() throws {
            try inLoop { loop throws in
                var depth = 0
                var deepest = 0
                var addresses: [UInt] = []
                /// Settles a promise, attaches to it before or after, and leaves.
                func step(_ number: Int) {
                    depth += 1
                    defer { depth -= 1 }
                    deepest = max(deepest, depth)
                    addresses.append(stackAddress())
                    guard number < 1000 else { return }
                    let (promise, resolver) = Promise<Int>.pending()
                    let attach = {
                        number % 3 == 0
                            ? promise.catch { _ in step(number + 1) }.finally {}
                            : promise.done { step($0) }.orFail()
                    }
                    if number % 2 == 0 { attach() }
                    if number % 3 == 0 { resolver.reject(Flaw(number)) } else { resolver.fulfill(number + 1) }
                    if number % 2 != 0 { attach() }
                }
                Promise.value(0).done { step($0) }.orFail()
                try loop.run()
                expectEqual(deepest, 1)
                expectEqual(addresses.count, 1001)
                // A frame or two apart, since one is called by way of `catch` and the other of `map`. (The address sanitizer
                // moves locals off the stack.)
                expect(isSanitized || addresses.max()! - addresses.min()! < 4096)
            }
        }

        @Test("2.2.4 a handler never runs inside the call of another thread that settles")
        func notInsideAnotherThreadsCall() throws {
            try EventLoop.withLoop { loop throws in
                let hold = loop.hold()
                let (promise, resolver) = Promise<Int>.pending()
                let isSettled = Shared(false)
                var sawItSettled: [Bool] = []
                let ended = promise.done { _ in sawItSettled.append(isSettled.value) }
                TestThread.run {
                    resolver.fulfill(1)
                    isSettled.change { $0 = true }
                }
                try hang(ended)
                expectEqual(sawItSettled, [true])
                hold.cancel()
            }
        }
    }
}

/// Where the stack of the caller is, roughly.
@inline(never)
private func stackAddress() -> UInt {
    var local = 0
    return withUnsafeMutablePointer(to: &local) { UInt(bitPattern: $0) }
}
