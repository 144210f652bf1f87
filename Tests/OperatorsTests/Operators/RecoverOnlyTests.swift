@testable import PromisesTestSupport

struct RecoverOnlyTests {
    private func failed(_ error: any Error = Flaw(1)) -> Promise<Int> { Promise(error: error) }

    @Test(.inLoop) func byType() {
        expect(failed().recover(only: Flaw.self) { Promise.value($0.number + 10) }, gives: 11)
        expect(failed().recover(only: Flaw.self) { _ in Guarantee.value(2) }, gives: 2)
        let later = failed().recover(only: Flaw.self) { flaw in
            let number = flaw.number
            return after(.seconds(1)).map { number }
        }
        expect(later, gives: 1)
    }

    @Test(.inLoop) func byValue() {
        expect(failed().recover(only: Flaw(1)) { Promise.value(2) }, gives: 2)
        expect(failed().recover(only: Flaw(1)) { after(.seconds(1)).map { 3 } }, gives: 3)
    }

    @Test(.inLoop) func otherErrorsFlowOn() {
        var calls = 0
        func two() -> Promise<Int> {
            calls += 1
            return .value(2)
        }
        expect(failed().recover(only: Flaw(2), two), failsWith: Flaw(1))
        expect(failed(PromiseError.timedOut).recover(only: Flaw.self) { _ in two() }, failsWith: PromiseError.timedOut)
        expect(Promise.value(1).recover(only: Flaw(1), two), gives: 1)
        expect(Promise.value(1).recover(only: Flaw.self) { _ in two() }, gives: 1)
        expectEqual(calls, 0)
        expect(failed().recover(only: Flaw(2), two).recover(only: Flaw(1), two), gives: 2)
    }

    @Test(.inLoop) func aPromiseOfVoidIsWaitedFor() {
        let failed = Promise<Void>(error: Flaw(1))
        let byType = failed.recover(only: Flaw.self) { _ in Promise<Void>(error: Flaw(2)) }
        expect(byType, failsWith: Flaw(2))
        expect(failed.recover(only: Flaw(1)) { Promise<Void>(error: Flaw(3)) }, failsWith: Flaw(3))
    }
}
