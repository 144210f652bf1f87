import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct RecoverTests {
    @Test func turnsAnErrorIntoAnotherPromise() throws {
        try inLoop { _ throws in
            let recovered = Promise<Int>(error: Flaw(3)).recover { Promise.value(($0 as! Flaw).number) }
            expect(recovered, gives: 3)
            let later = Promise<Int>(error: Flaw(3)).recover { _ in after(.seconds(1)).map { 4 }.asPromise() }
            expect(later, gives: 4)
        }
    }

    @Test func aValuePassesItBy() throws {
        try inLoop { _ throws in
            var ran = false
            let promise = Promise.value(1).recover { _ -> Promise<Int> in
                ran = true
                return .value(2)
            }
            expect(promise, gives: 1)
            expect(!ran)
        }
    }

    @Test func mayRejectAgain() {
        inLoop { _ in
            let thrown = Promise<Int>(error: Flaw(1)).recover { _ -> Promise<Int> in throw Flaw(2) }
            expect(thrown, failsWith: Flaw(2))
            let returned = Promise<Int>(error: Flaw(1)).recover { _ in Promise<Int>(error: Flaw(3)) }
            expect(returned, failsWith: Flaw(3))
        }
    }

    @Test func cancellationPassesByUnlessAskedFor() throws {
        try inLoop { _ throws in
            let cancelled = Promise<Int>(error: PromiseError.cancelled)
            expect(cancelled.recover { _ in Promise.value(1) }, failsWith: PromiseError.cancelled)
            expect(cancelled.recover(policy: .allErrors) { _ in Promise.value(1) }, gives: 1)
        }
    }

    @Test func toAGuaranteeHandlesEverything() throws {
        inLoop { _ in
            let errors: [any Error] = [Flaw(), PromiseError.cancelled, CancellationError()]
            for error in errors {
                let safe: Guarantee<Int> = Promise<Int>(error: error).recover { _ in .value(5) }
                expect(safe, gives: 5)
            }
            let untouched: Guarantee<Int> = Promise.value(1).recover { _ in .value(5) }
            expect(untouched, gives: 1)
        }
    }

    @Test func ofVoid() throws {
        try inLoop { _ throws in
            var seen: [Int] = []
            let failed = Promise<Void>(error: Flaw(1))
            let safe: Guarantee<Void> = failed.recover { seen.append(($0 as! Flaw).number) }
            hang(safe)
            let throwing = failed.recover { error throws in
                seen.append(2)
                throw error
            }
            expect(throwing, failsWith: Flaw(1))
            let cancelled = Promise<Void>(error: PromiseError.cancelled)
            let skipped: Promise<Void> = cancelled.recover(policy: .allErrorsExceptCancellation) { _ in seen.append(3) }
            expect(skipped, failsWith: PromiseError.cancelled)
            expectEqual(seen, [1, 2])
        }
    }

    @Test func theFirstOfSeveralThatAnswersEndsTheSearch() throws {
        try inLoop { _ throws in
            var tried: [Int] = []
            func attempt(_ number: Int) -> Promise<Int> {
                tried.append(number)
                return number < 3 ? Promise(error: Flaw(number)) : .value(number)
            }
            let promise = attempt(1).recover { _ in attempt(2) }.recover { _ in attempt(3) }.recover { _ in attempt(4) }
            expect(promise, gives: 3)
            expectEqual(tried, [1, 2, 3])
        }
    }
}
