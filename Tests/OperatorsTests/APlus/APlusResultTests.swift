@testable import PromisesTestSupport

extension APlusTests {
    /// 2.2.7
    struct APlusResultTests {
        @Test("2.2.7.2 the error that a handler throws is the next promise's", arguments: Setting.all, Thrower.allCases)
        func anErrorThrown(setting: Setting, thrower: Thrower) throws {
            let thing = Thing()
            for error in [thing, Flaw(3), PromiseError.timedOut, PromiseError.cancelled, CancellationError()]
                as [any Error]
            {
                var results: [Promise<Int>] = []
                let outcome: Result<Int, any Error> = thrower.isForRejections ? .failure(Flaw(1)) : .success(1)
                try setting.run(outcome) { promise in results.append(thrower.attach(to: promise, error)) }
                let seen = results.first?.error
                expectEqual(seen.map { "\($0)" }, "\(error)")
                if error is Thing { expect(seen as? Thing === thing) }
            }
        }

        @Test("2.2.7.3 without onFulfilled the value passes on", arguments: Setting.all)
        func aValuePassesOn(setting: Setting) throws {
            let thing = Thing()
            var seen: [Bool] = []
            func check(_ promise: Promise<Thing>) { promise.done { seen.append($0 === thing) }.orFail() }
            try setting.run(.success(thing)) { (promise: Promise<Thing>) in
                check(promise.recover { _ in Promise.value(Thing()) })
                check(promise.recover(policy: .allErrors) { _ throws -> Promise<Thing> in throw Flaw() })
                promise.recover { _ in Guarantee.value(Thing()) }.done { seen.append($0 === thing) }
                check(promise.ensure {})
                check(promise.ensureThen { after(.seconds(1)) })
                check(promise.tap { _ in })
                check(promise.get { _ in })
                check(promise.recover { _ in Promise.value(Thing()) }.ensure {}.recover { _ in Promise.value(Thing()) })
            }
            expectEqual(seen, Array(repeating: true, count: 8))
        }

        @Test("2.2.7.4 without onRejected the error passes on", arguments: Setting.all)
        func anErrorPassesOn(setting: Setting) throws {
            let thing = Thing()
            var seen: [Bool] = []
            var calls = 0
            func check(_ promise: Promise<Int>) { promise.catch { seen.append($0 as? Thing === thing) } }
            try setting.run(.failure(thing)) { (promise: Promise<Int>) in
                check(
                    promise.map {
                        calls += 1
                        return $0
                    })
                check(
                    promise.then { value -> Promise<Int> in
                        calls += 1
                        return .value(value)
                    })
                check(promise.get { _ in calls += 1 })
                check(promise.done { _ in calls += 1 }.map { 0 })
                check(promise.asVoid().map { 0 })
                check(promise.ensure {})
                check(promise.ensureThen { after(.seconds(1)) })
                check(promise.tap { _ in })
                check(promise.map { $0 }.then { Promise.value($0) }.get { _ in }.ensure {}.map { $0 })
            }
            expectEqual(calls, 0)
            expectEqual(seen, Array(repeating: true, count: 9))
        }
    }

    /// The operators whose handlers may throw.
    enum Thrower: CaseIterable {
        case map, then, done, get, recover, recoverOfVoid

        var isForRejections: Bool { self == .recover || self == .recoverOfVoid }

        func attach(to promise: Promise<Int>, _ error: any Error) -> Promise<Int> {
            switch self {
            case .map: promise.map { _ in throw error }
            case .then: promise.then { _ -> Promise<Int> in throw error }
            case .done: promise.done { _ in throw error }.map { 0 }
            case .get: promise.get { _ in throw error }
            case .recover: promise.recover { _ -> Promise<Int> in throw error }
            case .recoverOfVoid: promise.asVoid().recover { _ throws -> Void in throw error }.map { 0 }
            }
        }
    }
}

extension APlusTests {
    /// 2.3.4
    struct APlusValueTests {
        @Test("2.3.4 a value that is no thenable fulfills, an error among them", arguments: Setting.all)
        func ofEveryKind(setting: Setting) throws {
            let thing = Thing()
            try check(setting, 7) { $0 == 7 }
            try check(setting, ()) { _ in true }
            try check(setting, Int??.some(nil)) { $0 == .some(nil) }
            try check(setting, (1, "b", thing)) { $0 == 1 && $1 == "b" && $2 === thing }
            try check(setting, thing as Any) { $0 as? Thing === thing }
            try check(setting, { 8 }) { $0() == 8 }
            try check(setting, Int.self) { $0 == Int.self }
            try check(setting, thing as any Error) { $0 as? Thing === thing }
            try check(setting, Result<Int, Flaw>.failure(Flaw(1))) { $0 == .failure(Flaw(1)) }
        }

        @Test("2.3.4 map and value take a promise for a plain value and do not wait for it", arguments: Setting.all)
        func aPromiseAsAValue(setting: Setting) throws {
            let (inner, resolver) = Promise<Int>.pending()
            var outer: Promise<Promise<Int>>?
            try setting.run(.success(1)) { promise in outer = promise.map { _ in inner } }
            expect(outer?.isFulfilled == true && outer?.settledValue?.isPending == true)
            resolver.fulfill(5)
            expectEqual(outer?.settledValue?.settledValue, 5)
        }

        /// Lets a promise be fulfilled with `value`, by a resolver and by a handler that returns it.
        private func check<Value>(
            _ setting: Setting, _ value: Value, _ isRight: @escaping (Value) -> Bool,
            _ location: SourceLocation = #_sourceLocation
        ) throws {
            var seen: [Bool] = []
            try setting.run(.success(value)) { promise in
                promise.done { seen.append(isRight($0)) }.orFail()
                promise.map { $0 }.done { seen.append(isRight($0)) }.orFail()
                promise.then { Promise.value($0) }.done { seen.append(isRight($0)) }.orFail()
            }
            try setting.run(.success(())) { promise in promise.map { value }.done { seen.append(isRight($0)) }.orFail()
            }
            #expect(seen == [true, true, true, true], sourceLocation: location)
        }
    }
}
