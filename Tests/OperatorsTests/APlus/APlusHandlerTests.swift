@testable import PromisesTestSupport

extension APlusTests {
    /// 2.1 and 2.2
    struct APlusHandlerTests {
        private let loop = EventLoop.current

        /// The place of a second settlement, which must not count.
        enum Place: CaseIterable { case inlineHandler, handler, nextLine, otherThread }

        @Test("2.1.2, 2.1.3 a settled promise stays as it is", .inLoop, arguments: Place.allCases)
        func staysSettled(place: Place) throws {
            for (first, second) in zip(outcomes + outcomes, [.success(8), .failure(Flaw(8))] + outcomes.reversed()) {
                let (promise, resolver) = Promise<Int>.pending()
                let again = { @Sendable in resolver.resolve(second) }
                switch place {
                case .inlineHandler: promise.pipe { _ in again() }
                case .handler: promise.ensure(again).ignoringErrors()
                case .nextLine, .otherThread: break
                }
                var calls: [String] = []
                promise.tap { calls.append("\($0)") }.ignoringErrors()
                resolver.resolve(first)
                if place == .otherThread { TestThread.run(again) } else { again() }
                try loop.run()
                expectEqual(calls, ["\(first)"])
                expectEqual(promise.result.map { "\($0)" }, "\(first)")
            }
        }

        @Test(
            "2.2.2 to 2.2.7 called once each, when the promise has settled, with its outcome, in their order, not inside a call",
            arguments: Setting.all, Handler.allCases)
        func called(setting: Setting, handler: Handler) throws {
            for outcome in handler.outcomes {
                var calls: [Int] = []
                var isInside = false
                var results: [Promise<Int>] = []
                try setting.run(outcome) { promise in
                    func attach(_ index: Int, _ next: @escaping () -> Void = {}) {
                        isInside = true
                        let result = handler.attach(to: promise) {
                            expect(!promise.isPending && !isInside && "\($0)" == "\(outcome)")
                            calls.append(index)
                            next()
                        }
                        isInside = false
                        results.append(result)
                    }
                    // Those that a handler attaches come after all that wait.
                    attach(0) { for index in 3..<5 { attach(index) { attach(index + 2) } } }
                    attach(1)
                    attach(2)
                }
                expectEqual(calls, handler.isCalled(with: outcome) ? Array(0..<7) : [])
                let result = "\(handler.result(of: outcome))"
                for promise in results { expectEqual(promise.result.map { "\($0)" }, result) }
            }
        }

        @Test("2.2.6 handlers of several kinds are called in the order of attaching", arguments: Setting.all)
        func inOrder(setting: Setting) throws {
            let handlers = Handler.ofPromises + Handler.ofPromises.reversed()
            for outcome in outcomes {
                var calls: [Handler] = []
                try setting.run(outcome) { promise in
                    for handler in handlers {
                        handler.attach(to: promise) { _ in calls.append(handler) }.ignoringErrors()
                    }
                }
                expectEqual(calls, handlers.filter { $0.isCalled(with: outcome) })
            }
        }

        @Test("2.2.7.2 the error that a handler throws is its promise's", arguments: Setting.all, Handler.throwing)
        func anErrorThrown(setting: Setting, handler: Handler) throws {
            for error in [Flaw(3), PromiseError.timedOut, PromiseError.cancelled, CancellationError()] as [any Error] {
                for outcome in handler.outcomes where handler.isCalled(with: outcome) {
                    var result: Promise<Int>?
                    try setting.run(outcome) { result = handler.attach(to: $0) { _ in throw error } }
                    expectEqual(result?.error.map { "\($0)" }, "\(error)")
                }
            }
        }

        @Test("2.2.4 no handler runs inside another that settles or attaches", .inLoop)
        func theStackIsClean() throws {
            var (count, depth, deepest) = (0, 0, 0)
            func step() {
                count += 1
                depth += 1
                deepest = max(deepest, depth)
                defer { depth -= 1 }
                guard count < 100 else { return }
                let (promise, resolver) = Promise<Int>.pending()
                let attach = { promise.tap { _ in step() }.ignoringErrors() }
                if count % 2 == 0 { attach() }
                resolver.resolve(outcomes[count / 2 % 2])
                if count % 2 == 1 { attach() }
            }
            step()
            try loop.run()
            expect(deepest == 1 && count == 100)
        }
    }
}
