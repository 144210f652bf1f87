@testable import Promises
@testable import PromisesTestSupport

/// The losers of a race are cancelled, unless they have another waiter.
struct RaceLoserTests {
    private let loop = EventLoop.current

    @Test(.inLoop, arguments: [true, false]) func timersAreGoneFromTheLoop(isFulfilled: Bool) throws {
        let (promise, resolver) = Promise<Void>.pending()
        let winner = race(after(.seconds(60)).asPromise(), promise, after(.seconds(30)).map {}.asPromise())
        if isFulfilled { resolver.fulfill() } else { resolver.reject(Flaw(1)) }
        expect(winner.flaw == (isFulfilled ? nil : Flaw(1)) && winner.isResolved)
        expectEqual(loop.nextDeadline, nil)
        try loop.turn(.poll)
        expect(!loop.isAlive)
    }

    @Test(.inLoop) func whatIsReleasedMayStartAnotherRace() throws {
        let (first, resolver) = Promise<Int>.pending()
        let (last, lastResolver) = Promise<Int>.pending()
        let slow = {
            let words = LastWords { race(last, .value(3)).ignoringErrors() }
            return after(.seconds(60)).map { withExtendedLifetime(words) { 1 } }.asPromise()
        }()
        let winner = race(first, slow, last)
        resolver.fulfill(1)
        expectEqual(winner.settledValue, 1)
        try loop.run()
        expect(slow.isRejected && last.isRejected)
        withExtendedLifetime(lastResolver) {}
    }
}

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

/// A guarantee sealed by the program, such as a stop signal: it is raced round after round, and sealed at the end.
struct RacedGuaranteeTests {
    enum Use: CaseIterable {
        case won, raceOfPromises, raceFulfilled, wonAtOnce, timeout, withdrawn, gathered, raceOfSteps, dispatched
    }

    @Test(.inLoop, arguments: Use.allCases, [false, true]) func itsClosureCountsAfterEachRound(
        use: Use, isMadeByInit: Bool
    )
        throws
    {
        let (stop, seal) = make(isMadeByInit)
        for _ in 0..<2 {
            use.begin(with: stop)
            hang(after(.milliseconds(5)))
            expect(stop.isPending && !stop.asPromise().isCancelled)
        }
        seal(7)
        expect(stop, gives: 7)
    }

    private func make(_ isMadeByInit: Bool) -> (Guarantee<Int>, (Int) -> Void) {
        guard isMadeByInit else {
            let (stop, seal) = Guarantee<Int>.pending()
            return (stop, seal)
        }
        var seal: ((Int) -> Void)?
        let stop = Guarantee<Int> { (resolve: @escaping (Int) -> Void) in seal = resolve }
        return (stop, seal!)
    }
}

extension RacedGuaranteeTests.Use {
    /// An operation that no longer needs `stop` after a few milliseconds.
    fileprivate func begin(with stop: Guarantee<Int>) {
        let soon = after(.milliseconds(1)).map { 1 }
        switch self {
        case .won: race(soon, stop).done { _ in }
        case .raceOfPromises: race(soon.asPromise(), stop.asPromise()).cauterize()
        case .raceFulfilled: race(fulfilled: [soon.asPromise(), stop.asPromise()]).cauterize()
        case .wonAtOnce: race([Promise.value(1), stop.asPromise()]).cauterize()
        case .timeout: stop.timeout(.milliseconds(1)).catch(policy: .allErrors) { _ in }
        case .withdrawn: stop.map { $0 }.cancel()
        case .gathered: when(guarantees: [stop, soon]).cancel()
        case .raceOfSteps: race(soon, stop.map { $0 }).done { _ in }
        case .dispatched: stop.map(on: nil) { $0 }.cancel()
        }
    }
}
