@testable import PromisesTestSupport

extension APlusTests {
    /// 2.2.2 to 2.2.6
    struct APlusHandlerTests {
        private let loop = EventLoop.current

        @Test(
            "2.2.2, 2.2.3, 2.2.4 called once each, after the promise has settled, with its outcome, not inside a call",
            .inLoop,
            arguments: Setting.all, Handler.allCases)
        func called(setting: Setting, handler: Handler) throws {
            var calls: [String] = []
            var early = 0
            var isInside = false
            try setting.run(handler.outcome, beforeSettling: { early = calls.count }) { promise in
                let source = Source(promise)
                func attach(_ index: Int) {
                    isInside = true
                    handler.attach(to: source) {
                        calls.append("\(index) \($0) \(!source.promise.isPending && !isInside)")
                    }
                    isInside = false
                }
                attach(0)
                attach(1)
                EventLoop.current.schedule(after: .seconds(2)) { attach(2) }
            }
            expectEqual(early, 0)
            expectEqual(calls, (0..<3).map { "\($0) \(handler.outcome) true" })
        }

        @Test(
            "2.2.2, 2.2.3 not called for the other outcome", .inLoop, arguments: Setting.all,
            Handler.ofValues + Handler.ofErrors
        )
        func notForTheOtherOutcome(setting: Setting, handler: Handler) throws {
            var calls = 0
            try setting.run(handler.isForErrors ? .success(1) : .failure(Flaw())) { promise in
                handler.attach(to: Source(promise)) { _ in calls += 1 }
            }
            expectEqual(calls, 0)
        }

        // MARK: 2.2.4, on a clean stack

        @Test("2.2.4 no handler runs inside another, and none deeper in the stack than another", .inLoop)
        func theStackIsClean() throws {
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
            expect(deepest == 1 && addresses.count == 1001)
            // A frame or two apart, since one is called through `catch` and the other through `map`. (The address
            // sanitizer moves locals off the stack.)
            expect(isSanitized || addresses.max()! - addresses.min()! < 4096)
        }

        // MARK: 2.2.6, several

        @Test(
            "2.2.6 in the order of the calls", .inLoop, arguments: Setting.all,
            [Handler.ofValues, Handler.ofErrors, Handler.ofGuarantees])
        func inOrder(setting: Setting, handlers: [Handler]) throws {
            var calls: [String] = []
            try setting.run(handlers[0].outcome) { promise in
                let source = Source(promise)
                for round in 0..<2 {
                    for handler in handlers {
                        handler.attach(to: source) { _ in calls.append("\(round) \(handler)") }
                        // One for the other outcome between them.
                        (handler.isForErrors ? Handler.done : .catch).attach(to: source) { _ in calls.append("other") }
                    }
                }
            }
            expectEqual(calls, (0..<2).flatMap { round in handlers.map { "\(round) \($0)" } })
        }

        @Test("2.2.6 in order also if some throw, each with a result of its own", .inLoop, arguments: Setting.all)
        func someThrow(setting: Setting) throws {
            for outcome in [Result<Int, any Error>.success(1), .failure(Flaw(100))] {
                var calls: [Int] = []
                var results: [Promise<Int>] = []
                try setting.run(outcome) { promise in
                    for index in 0..<6 {
                        func step() throws -> Int {
                            calls.append(index)
                            if index % 2 == 1 { throw Flaw(index) }
                            return index
                        }
                        results.append(
                            outcome.flaw == nil
                                ? promise.map { _ in try step() }
                                : promise.recover { _ throws -> Promise<Int> in .value(try step()) })
                    }
                }
                expectEqual(calls, [0, 1, 2, 3, 4, 5])
                let values = results.map(\.settledValue), flaws = results.map(\.flaw)
                expectEqual(values, [0, nil, 2, nil, 4, nil])
                expectEqual(flaws, [nil, Flaw(1), nil, Flaw(3), nil, Flaw(5)])
            }
        }

        @Test(
            "2.2.6 one that is attached in a handler comes after all that wait", .inLoop, arguments: Setting.all,
            Handler.allCases)
        func attachedInside(setting: Setting, handler: Handler) throws {
            var calls: [Int] = []
            try setting.run(handler.outcome) { promise in
                let source = Source(promise)
                handler.attach(to: source) { _ in
                    calls.append(0)
                    for index in 3..<5 {
                        handler.attach(to: source) { _ in
                            calls.append(index)
                            handler.attach(to: source) { _ in calls.append(index + 2) }
                        }
                    }
                }
                for index in 1..<3 { handler.attach(to: source) { _ in calls.append(index) } }
            }
            expectEqual(calls, [0, 1, 2, 3, 4, 5, 6])
        }
    }
}

/// The approximate address of the caller's stack.
@inline(never)
private func stackAddress() -> UInt {
    var local = 0
    return withUnsafeMutablePointer(to: &local) { UInt(bitPattern: $0) }
}
