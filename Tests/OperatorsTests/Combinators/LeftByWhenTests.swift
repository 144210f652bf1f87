@testable import PromisesTestSupport

/// What a failed `when` leaves goes on, and the `when` is no listener of it any more: it is cancelled when the last
/// listener leaves.
struct LeftByWhenTests {
    enum Form: CaseIterable { case sequence, tuple, rejectedBefore, concurrently }
    enum Listener: CaseIterable { case before, after, none }
    enum Leaver: CaseIterable { case cancel, timeout, race, lateRace }

    @Test(.inLoop, arguments: Form.allCases, Leaver.allCases)
    func itIsCancelledUnlessItHasAListener(form: Form, leaver: Leaver) throws {
        for listener in Listener.allCases {
            for (isDerived, leaverIsFirst) in [(false, false), (false, true), (true, false), (true, true)] {
                var isStopped = false
                let (source, resolver) = Promise<Int>.pending()
                resolver.onCancel { isStopped = true }
                let work = isDerived ? source.map { $0 } : source
                var heard: Promise<Int>?
                if listener == .before { heard = work.map { $0 + 1 } }
                var leave = leaverIsFirst ? attach(leaver, to: work) : nil
                try fail(form, with: work)
                if listener == .after { heard = work.map { $0 + 1 } }
                let leaveNow = leave.take() ?? attach(leaver, to: work)
                expect(!isStopped)
                try leaveNow()
                try EventLoop.current.run()
                expectEqual(isStopped, listener == .none, "\(listener), \(isDerived), \(leaverIsFirst)")
                resolver.fulfill(1)
                if let heard { expect(heard, gives: 2) }
            }
        }
    }

    /// Makes a `when` of the promise and of another one, which is rejected.
    private func fail(_ form: Form, with work: Promise<Int>) throws {
        let (bad, rejecter) = Promise<Int>.pending()
        if form == .rejectedBefore { rejecter.reject(Flaw(1)) }
        let all =
            switch form {
            case .sequence, .rejectedBefore: when(fulfilled: [bad, work]).asVoid()
            case .tuple: when(fulfilled: bad, work).asVoid()
            case .concurrently: when(fulfilled: [bad, work], concurrently: 2) { $0 }.asVoid()
            }
        rejecter.reject(Flaw(1))
        try EventLoop.current.turn(.poll)
        expectEqual(all.flaw, Flaw(1))
    }

    /// Attaches a handler that leaves when the result is called.
    private func attach(_ leaver: Leaver, to work: Promise<Int>) -> () throws -> Void {
        switch leaver {
        case .cancel:
            let own = work.map { $0 }
            return { own.cancel() }
        case .timeout:
            let own = work.timeout(.seconds(1))
            return { expect(own, failsWith: PromiseError.timedOut) }
        case .race:
            let (winner, resolver) = Promise<Int>.pending()
            let own = race(winner, work)
            return {
                resolver.fulfill(7)
                expect(own, gives: 7)
            }
        case .lateRace: return { expect(race(.value(7), work), gives: 7) }
        }
    }

    /// A cancellation fails the `when` that has kept the promise: the `when` was a listener when the other one left.
    @Test(.inLoop, arguments: [false, true], [false, true])
    func itGoesOnIfItsCancelledListenerFailedTheWhen(isDerived: Bool, isSecond: Bool) throws {
        var isStopped = false
        let (source, resolver) = Promise<Int>.pending()
        resolver.onCancel { isStopped = true }
        let work = isDerived ? source.map { $0 } : source
        if isSecond { try fail(.sequence, with: work) }
        let own = work.map { $0 }
        let all = when(fulfilled: own, work)
        own.cancel()
        try EventLoop.current.run()
        expect(all.isCancelled && !isStopped)
        withExtendedLifetime(resolver) {}
    }
}
