@testable import PromisesTestSupport

/// `Promise(on:)` and `Guarantee(on:)`.
struct MadeOnDispatcherTests {
    private let pool = ThreadPool.shared

    private func number(_ number: Int) throws -> Int {
        if number < 0 { throw Flaw(number) }
        return number
    }

    @Test(.inLoop) func ofAClosureThatThrows() {
        expect(Promise(on: pool) { try number(1) }, gives: 1)
        expect(Promise(on: pool) { try number(-1) }, failsWith: Flaw(-1))
        expect(
            Promise(on: .shared) {
                let sum = try number(1) + number(2)
                return sum * 2
            }, gives: 6)
        expect(Promise(on: nil) { try number(4) }, gives: 4)
    }

    @Test(.inLoop) func ofOneThatDoesNot() {
        let guarantee = Guarantee(on: pool) {
            let two = 2
            return two * 2
        }
        expect(guarantee, gives: 4)
        expect(Promise(on: Immediate()) { 5 }, gives: 5)
    }
}
