@testable import PromisesTestSupport

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
