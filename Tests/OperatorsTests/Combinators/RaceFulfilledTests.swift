@testable import PromisesTestSupport

/// `race(fulfilled:)`.
struct RaceFulfilledTests {
    @Test(.inLoop) func allRejectedGivesAllErrorsInTheOrderOfTheList() throws {
        let pairs = (0..<4).map { _ in Promise<Int>.pending() }
        let winner = race(fulfilled: pairs.map(\.promise))
        for index in [2, 0, 3, 1] {
            expect(winner.isPending)
            pairs[index].resolver.reject(Flaw(index))
        }
        guard case .noWinner(let errors) = winner.error as? PromiseError else {
            Issue.record("\(winner)")
            return
        }
        expect(errors as? [Flaw] == [Flaw(0), Flaw(1), Flaw(2), Flaw(3)])
    }

    @Test(.inLoop) func rejectedFromTheStart() throws {
        let winner = race(fulfilled: [Promise<Int>(error: Flaw(1)), Promise(error: Flaw(2))])
        expect(winner, failsWith: PromiseError.noWinner([Flaw(1), Flaw(2)]))
    }

    @Test(.inLoop) func anEmptyListIsBadInput() {
        expect(race([Promise<Int>]()), failsWith: PromiseError.badInput("race of an empty list"))
        expect(race(fulfilled: [Promise<Int>]()), failsWith: PromiseError.badInput("race(fulfilled:) of an empty list"))
    }

    @Test(.inLoop) func anAbandonedOneCountsAsRejected() throws {
        let lines = try loggedInLoop { _ throws in
            let promises = [Promise<Int> { _ in }, Promise(error: Flaw()), after(.seconds(1)).map { 1 }.asPromise()]
            expect(race(fulfilled: promises), gives: 1)
        }
        expectEqual(lines.count, 1)
    }

    @Test(.inLoop) func errorsAreReleasedWithTheRace() throws {
        struct Heavy: Error { let token: Tally.Token }
        let tally = Tally()
        let (late, resolver) = Promise<Int>.pending()
        let winner = { race(fulfilled: [Promise(error: Heavy(token: tally.token())), late]) }()
        expectEqual(tally.alive, 1)
        resolver.fulfill(1)
        expect(winner.settledValue == 1 && tally.alive == 0)
    }
}
