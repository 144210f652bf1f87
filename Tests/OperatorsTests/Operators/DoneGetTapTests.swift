import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct DoneTests {
    @Test func seesTheValueAndEndsInVoid() throws {
        try inLoop { _ throws in
            var seen = 0
            let ended: Promise<Void> = Promise.value(3).done { seen = $0 }
            try hang(ended)
            expectEqual(seen, 3)
            let guaranteed: Guarantee<Void> = Guarantee.value(4).done { seen = $0 }
            hang(guaranteed)
            expectEqual(seen, 4)
        }
    }

    @Test func aThrowRejects() {
        inLoop { _ in
            expect(Promise.value(3).done { _ in throw Flaw(1) }, failsWith: Flaw(1))
        }
    }

    @Test func aRejectionPassesTheHandlerBy() {
        inLoop { _ in
            var ran = false
            expect(Promise<Int>(error: Flaw(1)).done { _ in ran = true }, failsWith: Flaw(1))
            expect(!ran)
        }
    }
}

@Suite struct GetTests {
    @Test func seesTheValueAndPassesItOn() throws {
        try inLoop { _ throws in
            var seen: [Int] = []
            let promise = Promise.value(3).get { seen.append($0) }.get { seen.append($0 + 1) }
            expect(promise, gives: 3)
            expect(Guarantee.value(5).get { seen.append($0) }, gives: 5)
            expectEqual(seen, [3, 4, 5])
        }
    }

    @Test func aThrowRejects() {
        inLoop { _ in
            expect(Promise.value(3).get { _ in throw Flaw(1) }, failsWith: Flaw(1))
        }
    }

    @Test func aRejectionPassesTheHandlerBy() {
        inLoop { _ in
            var ran = false
            expect(Promise<Int>(error: Flaw(1)).get { _ in ran = true }, failsWith: Flaw(1))
            expect(!ran)
        }
    }
}

@Suite struct TapTests {
    @Test func seesBothOutcomesAndChangesNeither() throws {
        try inLoop { _ throws in
            var outcomes: [String] = []
            func note(_ result: Result<Int, any Error>) {
                switch result {
                case .success(let value): outcomes.append("value \(value)")
                case .failure(let error): outcomes.append("error \((error as! Flaw).number)")
                }
            }
            expect(Promise.value(1).tap(note), gives: 1)
            expect(Promise<Int>(error: Flaw(2)).tap(note), failsWith: Flaw(2))
            expect(Guarantee.value(3).tap(note), gives: 3)
            expectEqual(outcomes, ["value 1", "error 2", "value 3"])
        }
    }

    @Test func seesCancellation() {
        inLoop { _ in
            var wasCancelled = false
            let promise = Promise<Int>(error: PromiseError.cancelled).tap {
                if case .failure(let error) = $0 { wasCancelled = error.isCancelled }
            }
            expect(promise, failsWith: PromiseError.cancelled)
            expect(wasCancelled)
        }
    }
}
