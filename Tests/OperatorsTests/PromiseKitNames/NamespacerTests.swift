@testable import PromisesTestSupport

/// `async(.promise)`.
struct NamespacerTests {
    private let pool = ThreadPool.shared

    private func failing() throws -> Int { throw Flaw(1) }

    @Test(.inLoop) func aClosureThatThrowsGivesAPromise() {
        expect(pool.async(.promise) { try failing() }, failsWith: Flaw(1))
        let asked: Promise<Int> = pool.async(.promise) { 3 }
        expect(asked, gives: 3)
        let dispatchers: [any Dispatcher] = [Immediate(), pool]
        for dispatcher in dispatchers {
            expect(dispatcher.async(.promise) { () throws -> Int in 4 }, gives: 4)
        }
    }

    @Test(.inLoop) func oneThatDoesNotGivesAGuarantee() {
        let sure = pool.async(.promise) { 5 }
        expect(type(of: sure) == Guarantee<Int>.self)
        expect(sure, gives: 5)
        let ran = Gate()
        pool.async(.promise) { ran.open() }
        ran.wait()
    }
}
