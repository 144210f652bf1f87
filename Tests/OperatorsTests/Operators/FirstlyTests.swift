import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct FirstlyTests {
    @Test func runsAtOnce() throws {
        inLoop { _ in
            var ran = false
            firstly { () -> Promise<Void> in
                ran = true
                return .value
            }.ignoringErrors()
            expect(ran)
        }
    }

    @Test func settlesAsTheBodysPromise() throws {
        try inLoop { _ throws in
            expect(firstly { Promise.value(1) }.map { $0 + 1 }, gives: 2)
            expect(firstly { Promise<Int>(error: Flaw(3)) }, failsWith: Flaw(3))
        }
    }

    @Test func aThrowRejects() {
        inLoop { _ in
            let promise = firstly { () throws -> Promise<Int> in throw Flaw(1) }
            expectEqual(promise.flaw, Flaw(1))
        }
    }

    @Test func aGuaranteeStaysOne() {
        inLoop { _ in
            let guarantee: Guarantee<Int> = firstly { Guarantee.value(1) }
            expect(guarantee, gives: 1)
            let chain: Guarantee<Int> = firstly { after(.seconds(1)) }.map { 2 }
            expect(chain, gives: 2)
        }
    }
}
