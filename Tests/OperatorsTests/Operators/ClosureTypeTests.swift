@testable import PromisesTestSupport

/// Closures whose type the compiler infers from the operator: `.value(…)` beside promises, and promises beside
/// guarantees.
struct ClosureTypeTests {
    private let one = Promise.value(1)
    private let failed = Promise<Int>(error: Flaw(1))

    @Test(.inLoop) func valueAsTheOnlyExpression() {
        expect(one.then { .value($0 + 1) }, gives: 2)
        expect(one.then { $0 > 1 ? one : .value(7) }, gives: 7)
        expect(failed.recover(only: Flaw.self) { .value($0.number + 1) }, gives: 2)
        expect(Promise.value([1, 2]).thenMap { .value("\($0)") }, gives: ["1", "2"])
        let empty: Promise<Void> = one.then { $0 > 0 ? .value : one.asVoid() }
        #expect(throws: Never.self) { try hang(empty) }
        let text: Promise<String?> = after(.zero).then { .value(.some("x")) }
        expect(text, gives: "x")
    }

    @Test(.inLoop) func valueAmongSeveralStatements() {
        var calls = 0
        let then = one.then { number in
            calls += 1
            if number == 1 { return .value(2) }
            return one
        }
        let recovered: Promise<Int> = failed.recover { _ in
            calls += 1
            return .value(3)
        }
        let some = failed.recover(only: Flaw.self) { flaw in
            calls += 1
            return .value(flaw.number + 3)
        }
        let mapped = Promise.value([1, 5]).thenMap { number in
            calls += 1
            if number == 1 { return .value(4) }
            return .value(number)
        }
        let first = firstly {
            calls += 1
            if calls > 1 { return .value(6) }
            return one
        }
        let onAPool = one.then(on: ThreadPool.shared) { number in
            guard number > 1 else { return .value(8) }
            return .value(number)
        }
        expect(onAPool, gives: 8)
        expect(then, gives: 2)
        expect(recovered, gives: 3)
        expect(some, gives: 4)
        expect(mapped, gives: [4, 5])
        expect(first, gives: 1)
        expectEqual(calls, 6)
    }

    @Test(.inLoop) func promisesBesideGuarantees() {
        func later(_ number: Int) -> Guarantee<Int> { after(.seconds(1)).map { number } }
        let branches = one.then { number in if number > 1 { one } else { later(2) } }
        let cases = one.then { number in
            switch number {
            case 1: later(3)
            default: failed
            }
        }
        let statements = one.then { number in
            if number > 1 { return one }
            return later(4)
        }
        let recovered = failed.recover { error in if error is Flaw { later(5) } else { one } }
        let policy = Promise<Int>(error: PromiseError.cancelled)
            .recover(policy: .allErrors) { error in if error is Flaw { later(6) } else { one } }
        expect(branches, gives: 2)
        expect(cases, gives: 3)
        expect(statements, gives: 4)
        expect(recovered, gives: 5)
        expect(policy, gives: 1)
    }

    /// The declared type chooses between a promise and a guarantee. Without one it is a guarantee, as in PromiseKit.
    @Test(.inLoop) func recoverGivesWhatIsDeclared() {
        let promise: Promise<Int> = failed.recover { _ in .value(2) }
        let guarantee: Guarantee<Int> = failed.recover { _ in .value(3) }
        let either = failed.recover { _ in .value(4) }
        expect(promise, gives: 2)
        expect(guarantee, gives: 3)
        expect(type(of: either) == Guarantee<Int>.self)
        expectEqual(hang(either), 4)
    }
}
