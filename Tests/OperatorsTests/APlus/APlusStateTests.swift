import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

extension APlusTests {
    /// 2.1
    @Suite struct APlusStateTests {
        @Test("2.1.1.1 a pending promise may become fulfilled", arguments: Setting.all)
        func mayBecomeFulfilled(setting: Setting) throws {
            var wasPending = setting.settling == .already
            var promise: Promise<Int>?
            try setting.run(
                .success(1), beforeSettling: { wasPending = promise!.isPending },
                attach: { promise = $0 })
            expect(wasPending)
            expect(promise?.isFulfilled == true && promise?.isPending == false && promise?.isRejected == false)
            expectEqual(promise?.settledValue, 1)
        }

        @Test("2.1.1.1 a pending promise may become rejected", arguments: Setting.all)
        func mayBecomeRejected(setting: Setting) throws {
            var wasPending = setting.settling == .already
            var promise: Promise<Int>?
            try setting.run(
                .failure(Flaw(1)), beforeSettling: { wasPending = promise!.isPending },
                attach: { promise = $0 })
            expect(wasPending)
            expect(promise?.isRejected == true && promise?.isPending == false && promise?.isFulfilled == false)
            expectEqual(promise?.flaw, Flaw(1))
        }

        @Test("2.1.1 a promise that is not settled stays pending, whatever else runs", arguments: Kind.allCases)
        func staysPending(kind: Kind) throws {
            try inLoop { loop throws in
                let (promise, resolver) = try kind.make(loop) as (Promise<Int>, Resolver<Int>)
                loop.schedule(after: .seconds(1)) {}
                for _ in 0..<3 { try loop.turn(.poll) }
                expect(promise.isPending)
                resolver.fulfill(1)
                try loop.run()
            }
        }

        @Test("2.1.2.1 a fulfilled promise stays fulfilled", arguments: Second.allCases, Place.allCases)
        func staysFulfilled(second: Second, place: Place) throws {
            for kind in Kind.allCases {
                let (promise, calls) = try settleTwice(kind, { $0.fulfill(1) }, second, place)
                expect(promise.isFulfilled && promise.settledValue == 1, "\(kind)")
                expectEqual(calls, ["fulfilled with 1"], "\(kind)")
            }
        }

        @Test("2.1.3.1 a rejected promise stays rejected", arguments: Second.allCases, Place.allCases)
        func staysRejected(second: Second, place: Place) throws {
            for kind in Kind.allCases {
                let (promise, calls) = try settleTwice(kind, { $0.reject(Flaw(1)) }, second, place)
                expect(promise.isRejected && promise.flaw == Flaw(1), "\(kind)")
                expectEqual(calls, ["rejected with Flaw(number: 1)"], "\(kind)")
            }
        }

        @Test("2.1.2.2 the value is there and never another", arguments: Setting.all)
        func theValueNeverChanges(setting: Setting) throws {
            let thing = Thing()
            var seen: [Thing?] = []
            var promise: Promise<Thing>?
            try setting.run(.success(thing)) {
                promise = $0
                $0.done { value in
                    seen.append(value)
                    promise!.done { seen.append($0) }.orFail()
                    seen.append(promise!.settledValue)
                }.orFail()
            }
            seen += [promise?.settledValue, promise?.settledValue]
            let same = seen.filter { $0 === thing }.count
            expect(same == 5 && seen.count == 5)
        }

        @Test("2.1.3.2 the error is there and never another", arguments: Setting.all)
        func theErrorNeverChanges(setting: Setting) throws {
            let thing = Thing()
            var seen: [(any Error)?] = []
            var promise: Promise<Int>?
            try setting.run(.failure(thing)) {
                promise = $0
                $0.catch { error in
                    seen.append(error)
                    promise!.catch { seen.append($0) }
                    seen.append(promise!.error)
                }
            }
            seen += [promise?.error, promise?.error]
            let same = seen.filter { $0 as? Thing === thing }.count
            expect(same == 5 && seen.count == 5)
        }

        @Test("2.1.2.1, 2.1.3.1 of the resolver's forms each counts once", arguments: Second.allCases)
        func theFirstOfAllFormsCounts(first: Second) throws {
            for second in Second.allCases {
                try inLoop { loop throws in
                    let (promise, resolver) = Promise<Int>.pending()
                    first.settle(resolver)
                    let before = "\(promise)"
                    second.settle(resolver)
                    let after = "\(promise)"
                    expect(after == before && promise.isResolved, "\(second)")
                    promise.ignoringErrors()
                    try loop.run()
                }
            }
        }

        @Test("2.1.2.1 a guarantee is fulfilled once", arguments: Settling.allCases)
        func aGuaranteeIsFulfilledOnce(settling: Settling) throws {
            try inLoop { loop throws in
                let (guarantee, resolve) = Guarantee<Int>.pending()
                var calls: [Int] = []
                let settle = {
                    resolve(1)
                    resolve(2)
                }
                try settling.run(loop, settle: settle) {
                    guarantee.done {
                        calls.append($0)
                        resolve(3)
                    }
                }
                resolve(4)
                try loop.run()
                expectEqual(calls, [1])
                expectEqual(guarantee.settledValue, 1)
            }
        }
    }
}

extension APlusTests {
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

    /// Where it comes from.
    enum Place: CaseIterable {
        case nextLine, inlineWhileSettling, handler, handlerOfAHandler, jobBeforeTheHandlers, timer, otherThread
    }

    /// Settles a promise of `kind` by `first`, and by `second` from `place`; what becomes of it, and all that its
    /// handlers have been told.
    private static func settleTwice(
        _ kind: Kind, _ first: (Resolver<Int>) -> Void, _ second: Second, _ place: Place
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
            promise.tap { outcome in
                switch outcome {
                case .success(let value): calls.append("fulfilled with \(value)")
                case .failure(let error): calls.append("rejected with \(error)")
                }
            }.ignoringErrors()
            if place == .jobBeforeTheHandlers { loop.enqueue { second.settle(resolver) } }
            first(resolver)
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
