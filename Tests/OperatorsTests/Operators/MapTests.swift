import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

@Suite struct MapTests {
    @Test func transforms() throws {
        try inLoop { _ throws in
            expect(Promise.value(3).map { "\($0)" }, gives: "3")
            expect(Guarantee.value(3).map { $0 + 0.5 }, gives: 3.5)
        }
    }

    @Test func aThrowRejects() {
        inLoop { _ in
            let promise = Promise.value(3).map { _ -> Int in throw Flaw(1) }
            expect(promise, failsWith: Flaw(1))
            let fromGuarantee = Guarantee.value(3).map { value throws -> Int in
                if value == 3 { throw Flaw(2) }
                return value
            }
            expect(fromGuarantee, failsWith: Flaw(2))
        }
    }

    @Test func aRejectionPassesTheHandlerBy() {
        inLoop { _ in
            var calls = 0
            let promise = Promise<Int>(error: Flaw(1)).map { value -> Int in
                calls += 1
                return value
            }.map { value -> String in
                calls += 1
                return "\(value)"
            }
            expect(promise, failsWith: Flaw(1))
            expectEqual(calls, 0)
        }
    }

    @Test func keyPathsAreHandlers() throws {
        try inLoop { _ throws in
            expect(Promise.value("four").map(\.count), gives: 4)
            expect(Guarantee.value([1, 2]).map(\.isEmpty), gives: false)
        }
    }

    @Test func aPromiseMayBeAValue() throws {
        try inLoop { _ throws in
            let nested = Promise.value(1).map { Promise.value($0 + 1) }
            expect(try hang(nested), gives: 2)
        }
    }

    @Test func asVoid() throws {
        try inLoop { _ throws in
            try hang(Promise.value(3).asVoid())
            hang(Guarantee.value(3).asVoid())
            expect(Promise<Int>(error: Flaw(1)).asVoid(), failsWith: Flaw(1))
            let list: [Promise<Void>] = [Promise.value(1).asVoid(), Promise.value("a").asVoid()]
            try hang(when(fulfilled: list))
        }
    }

    @Test func aLongChainOfOneValue() throws {
        try inLoop { _ throws in
            let (start, resolver) = Promise<Int>.pending()
            var promise = start
            for step in 1...100 { promise = promise.map { $0 + step } }
            resolver.fulfill(0)
            expect(promise, gives: 5050)
        }
    }
}
