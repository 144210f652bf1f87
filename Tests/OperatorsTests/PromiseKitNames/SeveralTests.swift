@testable import PromisesTestSupport

/// The forms of `when` and `recover`.
struct SeveralTests {
    private let loop = EventLoop.current
    private let one = Promise.value(1)
    private let sure = Guarantee.value("a")
    private let void = Promise<Void>.value
    private let failed = Promise<Int>(error: Flaw(1))

    @Test(.inLoop) func whenOfIterators() {
        var left = 4
        let work = AnyIterator { () -> Promise<Int>? in
            left -= 1
            let number = left
            return number < 0 ? nil : after(.seconds(1)).map { number }.asPromise()
        }
        expect(when(fulfilled: work, concurrently: 2), gives: [3, 2, 1, 0])
        expectEqual(loop.now.nanoseconds, 2_000_000_000)
        let outcomes = when(resolved: [one, failed, one].makeIterator(), concurrently: 2)
        expect(outcomes.map { $0.map { (try? $0.get()) ?? 0 } }, gives: [1, 0, 1])
    }

    @Test(.inLoop) func whenOfTuples() {
        expect(when(fulfilled: one, sure, one, sure).map { "\($0)\($1)\($2)\($3)" }, gives: "1a1a")
        expect(when(fulfilled: one, sure, one, sure, one).map { "\($0)\($1)\($2)\($3)\($4)" }, gives: "1a1a1")
        expect(when(guarantees: sure, sure, sure).map { [$0, $1, $2].joined() }, gives: "aaa")
        expect(when(guarantees: sure, sure, sure, sure).map { [$0, $1, $2, $3].joined() }, gives: "aaaa")
        expect(when(guarantees: sure, sure, sure, sure, sure).map { [$0, $1, $2, $3, $4].joined() }, gives: "aaaaa")
    }

    @Test(.inLoop) func whenOfVoids() throws {
        let promise: Promise<Void> = when(fulfilled: void, void, void)
        let list: Guarantee<Void> = when(guarantees: [.value, .value])
        let guarantees: Guarantee<Void> = when(guarantees: .value, .value, .value)
        try hang(promise)
        hang(list)
        hang(guarantees)
    }

    @Test(.inLoop) func whenOfSeveralTypes() {
        let list: [any Thenable] = [one, sure]
        expect(when(fulfilled: list).map { "\($0)" }, gives: "[1, \"a\"]")
        expect(when(resolved: one, failed, one).map { $0.map { (try? $0.get()) ?? 0 } }, gives: [1, 0, 1])
    }

    @Test(.inLoop) func recoverFromVoid() throws {
        var calls = 0
        let failed = failed.asVoid()
        let always: Guarantee<Void> = failed.recover { _ in calls += 1 }
        hang(always)
        try hang(failed.recover(policy: .allErrors) { _ throws in calls += 1 })
        expectEqual(calls, 2)
    }
}
