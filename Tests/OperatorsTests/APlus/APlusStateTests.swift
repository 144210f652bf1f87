@testable import PromisesTestSupport

extension APlusTests {
    /// 2.1
    struct APlusStateTests {
        @Test("2.1.1.1 a pending promise may become fulfilled or rejected", arguments: Setting.all)
        func mayBecomeSettled(setting: Setting) throws {
            for outcome in [Result<Int, any Error>.success(1), .failure(Flaw(1))] {
                var wasPending = setting.settling == .already
                var promise: Promise<Int>?
                try setting.run(outcome, beforeSettling: { wasPending = promise!.isPending }, attach: { promise = $0 })
                let seen = try #require(promise)
                expect(wasPending && !seen.isPending && isSame(seen, outcome))
                expect(seen.isFulfilled == (outcome.flaw == nil) && seen.isRejected == (outcome.flaw != nil))
            }
        }

        @Test("2.1.2, 2.1.3 a settled promise stays as it is", arguments: Second.allCases, Place.allCases)
        func staysSettled(second: Second, place: Place) throws {
            for kind in Kind.allCases {
                for outcome in [Result<Int, any Error>.success(1), .failure(Flaw(1))] {
                    let (promise, seen) = try settleTwice(kind, outcome, second, place)
                    expect(isSame(promise, outcome) && seen == ["\(outcome)"], "\(kind), \(seen)")
                }
            }
        }

        @Test("2.1.2.1 a guarantee is fulfilled once", .inLoop, arguments: Settling.allCases)
        func aGuaranteeIsFulfilledOnce(settling: Settling) throws {
            let loop = EventLoop.current
            let (guarantee, resolve) = Guarantee<Int>.pending()
            var calls: [Int] = []
            let settle = { for value in 1...2 { resolve(value) } }
            try settling.run(loop, settle: settle) {
                guarantee.done {
                    calls.append($0)
                    resolve(3)
                }
            }
            resolve(4)
            try loop.run()
            expect(calls == [1] && guarantee.settledValue == 1)
        }
    }

    /// A second settlement, which must not count.
    enum Second: CaseIterable {
        case fulfill, reject, result, failedResult, valueAndNoError, errorAndNoValue, neither

        func settle(_ resolver: Resolver<Int>) {
            switch self {
            case .fulfill: resolver.fulfill(2)
            case .reject: resolver.reject(Flaw(2))
            case .result: resolver.resolve(Result<Int, Flaw>.success(2))
            case .failedResult: resolver.resolve(Result<Int, Flaw>.failure(Flaw(2)))
            case .valueAndNoError: resolver.resolve(2, nil)
            case .errorAndNoValue: resolver.resolve(nil, Flaw(2))
            case .neither: resolver.resolve(nil, nil)
            }
        }
    }

    /// Its origin.
    enum Place: CaseIterable {
        case nextLine, inlineWhileSettling, handler, handlerOfAHandler, jobBeforeTheHandlers, timer, otherThread
    }

    /// Settles a promise of `kind` with `outcome`, and by `second` from `place`; returns its outcome, and the argument
    /// of its handler.
    private static func settleTwice(
        _ kind: Kind, _ outcome: Result<Int, any Error>, _ second: Second, _ place: Place
    ) throws -> (Promise<Int>, [String]) {
        try inLoop { loop throws in
            let (promise, resolver) = try kind.make(loop) as (Promise<Int>, Resolver<Int>)
            var calls: [String] = []
            switch place {
            case .nextLine, .otherThread, .jobBeforeTheHandlers, .timer: break
            case .inlineWhileSettling: promise.pipe { _ in second.settle(resolver) }
            case .handler: promise.tap { _ in second.settle(resolver) }.ignoringErrors()
            case .handlerOfAHandler:
                promise.ensure { Promise.value(1).done { _ in second.settle(resolver) }.orFail() }.ignoringErrors()
            }
            promise.tap { calls.append("\($0)") }.ignoringErrors()
            if place == .jobBeforeTheHandlers { loop.enqueue { second.settle(resolver) } }
            resolver.resolve(outcome)
            switch place {
            case .nextLine: second.settle(resolver)
            case .timer: loop.schedule(after: .seconds(1)) { second.settle(resolver) }
            case .otherThread: TestThread.run { second.settle(resolver) }
            default: break
            }
            try loop.run()
            return (promise, calls)
        }
    }
}
