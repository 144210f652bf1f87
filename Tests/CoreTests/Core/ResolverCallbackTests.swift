@testable import PromisesTestSupport

// Calls that report by callback, in every form that `Resolver.resolve` must fit.

private func optional(_ value: Int?, _ error: (any Error)?, _ done: (Int?, (any Error)?) -> Void) {
    done(value, error)
}
private func optionalSendable(
    _ value: Int?, _ error: (any Error)?, _ done: @escaping @Sendable (Int?, (any Error)?) -> Void
) { done(value, error) }
private func reversed(_ value: Int?, _ error: (any Error)?, _ done: ((any Error)?, Int?) -> Void) {
    done(error, value)
}
private func reversedSendable(
    _ value: Int?, _ error: (any Error)?, _ done: @escaping @Sendable ((any Error)?, Int?) -> Void
) { done(error, value) }
private func typed(_ value: Int?, _ error: Flaw?, _ done: (Int?, Flaw?) -> Void) { done(value, error) }
private func result(_ result: Result<Int, Flaw>, _ done: (Result<Int, Flaw>) -> Void) { done(result) }
private func resultSendable(
    _ result: Result<Int, any Error>, _ done: @escaping @Sendable (Result<Int, any Error>) -> Void
) { done(result) }
private func failing(_ error: (any Error)?, _ done: ((any Error)?) -> Void) { done(error) }
private func failingSendable(_ error: (any Error)?, _ done: @escaping @Sendable ((any Error)?) -> Void) {
    done(error)
}
private func ending(_ done: () -> Void) { done() }

/// Not an optional, although `nil` is one of its literals.
private enum Tree: ExpressibleByNilLiteral, Equatable {
    case null
    case number(Int)

    init(nilLiteral: ()) { self = .null }
}
private func endingSendable(_ done: @escaping @Sendable () -> Void) { done() }
private func generic<Value>(_ value: Value, _ done: (Value) -> Void) { done(value) }
private func genericSendable<Value>(_ value: Value, _ done: @escaping @Sendable (Value) -> Void) { done(value) }

struct ResolverCallbackTests {
    @Test func aSettlementTellsWhetherItCountedAndIsAFunctionWithoutAResult() {
        let (promise, resolver) = Promise<Int>.pending()
        let (other, another) = (Promise<Int>.pending(), Promise<Void>.pending())
        expectEqual("\(resolver.fulfill(1)) \(resolver.fulfill(2)) \(resolver.reject(Flaw()))", "true false false")
        expectEqual("\(other.resolver.reject(Flaw(2))) \(another.resolver.fulfill())", "true true")
        expect(promise.settledValue == 1 && other.promise.flaw == Flaw(2) && another.promise.isFulfilled)
        let (last, end, failed) = (Promise<Int>.pending(), Promise<Void>.pending(), Promise<Int>.pending())
        generic(3, last.resolver.fulfill)
        ending(end.resolver.fulfill)
        let reject: (any Error) -> Void = failed.resolver.reject
        reject(Flaw(4))
        expect(last.promise.settledValue == 3 && end.promise.isFulfilled && failed.promise.flaw == Flaw(4))
    }

    @Test func valueAndError() {
        let all: [(Int?, (any Error)?) -> Promise<Int>] = [
            { value, error in Promise { optional(value, error, $0.resolve) } },
            { value, error in Promise { optionalSendable(value, error, $0.resolve) } },
            { value, error in Promise { typed(value, error as! Flaw?, $0.resolve) } },
            { value, error in Promise { reversed(value, error, $0.resolve) } },
            { value, error in Promise { reversedSendable(value, error, $0.resolve) } },
        ]
        for form in all {
            expect(form(1, nil), gives: 1)
            expect(form(nil, Flaw(2)), failsWith: Flaw(2))
            expect(form(1, Flaw(2)), failsWith: Flaw(2))
            expect(form(nil, nil), failsWith: PromiseError.invalidCallingConvention)
        }
    }

    /// Where the compiler infers the type of the value, it must not choose an optional for the missing value.
    @Test(.inLoop) func neitherValueNorErrorOfATypeThatIsInferred() throws {
        let loop = EventLoop.current
        var errors = 0
        Promise { optional(nil, nil, $0.resolve) }.done { print($0 as Any) }.catch { _ in errors += 1 }
        Promise { reversed(nil, nil, $0.resolve) }.done { print($0 as Any) }.catch { _ in errors += 1 }
        #expect(throws: PromiseError.self) { print(try hang(Promise { optional(nil, nil, $0.resolve) }) as Any) }
        try loop.run()
        expectEqual(errors, 2)
    }

    @Test func results() {
        expect(Promise<Int> { result(.success(1), $0.resolve) }, gives: 1)
        expect(Promise<Int> { result(.failure(Flaw(2)), $0.resolve) }, failsWith: Flaw(2))
        expect(Promise<Int> { resultSendable(.failure(Flaw(2)), $0.resolve) }, failsWith: Flaw(2))
    }

    @Test func voids() {
        let ended: [Promise<Void>] = [
            Promise { failing(nil, $0.resolve) }, Promise { failingSendable(nil, $0.resolve) },
            Promise { ending($0.resolve) }, Promise { endingSendable($0.resolve) },
            Promise { ending($0.fulfill) }, Promise { endingSendable($0.fulfill) },
            Promise { generic((), $0.fulfill) }, Promise { genericSendable((), $0.fulfill) },
        ]
        for promise in ended { expect(promise.isFulfilled) }
        expect(Promise<Void> { failing(Flaw(1), $0.resolve) }, failsWith: Flaw(1))
        expect(Promise<Void> { failingSendable(Flaw(1), $0.resolve) }, failsWith: Flaw(1))
    }

    /// A value that may be nil is a value: no callback of this form breaks the convention.
    @Test func valuesThatMayBeNil() {
        let all: [(Int?, (any Error)?) -> Promise<Int?>] = [
            { value, error in Promise { optional(value, error, $0.resolve) } },
            { value, error in Promise { optionalSendable(value, error, $0.resolve) } },
            { value, error in Promise { reversed(value, error, $0.resolve) } },
            { value, error in Promise { reversedSendable(value, error, $0.resolve) } },
        ]
        for form in all {
            expect(form(1, nil), gives: 1)
            expect(form(nil, nil), gives: nil)
            expect(form(nil, Flaw(2)), failsWith: Flaw(2))
            expect(form(1, Flaw(2)), failsWith: Flaw(2))
        }
    }

    /// Spelled out with literals, which more than one form may seem to fit.
    @Test func calls() {
        func settled<T>(_ settle: (Resolver<T>) -> Void) -> Promise<T> {
            let (promise, resolver) = Promise<T>.pending()
            settle(resolver)
            return promise
        }
        expect(settled { (resolver: Resolver<Int>) in resolver.resolve(1, nil) }, gives: 1)
        expect(settled { (resolver: Resolver<Int>) in resolver.resolve(nil, 1) }, gives: 1)
        expect(settled { (resolver: Resolver<Int>) in resolver.resolve(nil, Flaw(1)) }, failsWith: Flaw(1))
        expect(settled { (resolver: Resolver<Int>) in resolver.resolve(Flaw(1), nil) }, failsWith: Flaw(1))
        expect(
            settled { (resolver: Resolver<Int>) in resolver.resolve(nil, nil) },
            failsWith: PromiseError.invalidCallingConvention)
        expect(settled { (resolver: Resolver<Int?>) in resolver.resolve(nil, nil) }, gives: nil)
        expect(
            settled { (resolver: Resolver<Tree>) in resolver.resolve(Tree?.none, nil) },
            failsWith: PromiseError.invalidCallingConvention)
        expect(settled { (resolver: Resolver<Tree>) in resolver.resolve(nil as Tree, nil) }, gives: .null)
        expect(settled { (resolver: Resolver<Int?>) in resolver.resolve(1, nil) }, gives: 1)
        expect(settled { (resolver: Resolver<Void>) in resolver.resolve(Flaw(1)) }, failsWith: Flaw(1))
        let voids: [Promise<Void>] = [
            settled { $0.resolve(nil) }, settled { $0.resolve() }, settled { $0.resolve((), nil) },
            settled { $0.fulfill() }, settled { $0.fulfill(()) },
        ]
        for promise in voids { expect(promise.isFulfilled) }
    }

    /// Both orders fit; the value comes first.
    @Test func errorsAsValues() {
        let value = Promise<any Error> { $0.resolve(Flaw(1), nil) }
        expect(value.settledValue as? Flaw == Flaw(1))
        expect(Promise<any Error> { $0.resolve(nil, Flaw(2)) }.asVoid(), failsWith: Flaw(2))
    }
}
