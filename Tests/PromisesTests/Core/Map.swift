import Promises
import Reactor
import Testing

@Suite struct MapTests {
    @Test func transforms() throws {
        try inLoop { _ throws in
            #expect(try hang(Promise.value(3).map { "\($0)" }) == "3")
            #expect(hang(Guarantee.value(3).map { $0 + 0.5 }) == 3.5)
        }
    }

    @Test func aThrowRejects() {
        inLoop { _ in
            let promise = Promise.value(3).map { _ -> Int in throw Flaw(1) }
            #expect(throws: Flaw(1)) { try hang(promise) }
            let fromGuarantee = Guarantee.value(3).map { value throws -> Int in
                if value == 3 { throw Flaw(2) }
                return value
            }
            #expect(throws: Flaw(2)) { try hang(fromGuarantee) }
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
            #expect(throws: Flaw(1)) { try hang(promise) }
            #expect(calls == 0)
        }
    }

    @Test func keyPathsAreHandlers() throws {
        try inLoop { _ throws in
            #expect(try hang(Promise.value("four").map(\.count)) == 4)
            #expect(hang(Guarantee.value([1, 2]).map(\.isEmpty)) == false)
        }
    }

    @Test func aPromiseMayBeAValue() throws {
        try inLoop { _ throws in
            let nested = Promise.value(1).map { Promise.value($0 + 1) }
            #expect(try hang(hang(nested)) == 2)
        }
    }

    @Test func asVoid() throws {
        try inLoop { _ throws in
            try hang(Promise.value(3).asVoid())
            hang(Guarantee.value(3).asVoid())
            #expect(throws: Flaw(1)) { try hang(Promise<Int>(error: Flaw(1)).asVoid()) }
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
            #expect(try hang(promise) == 5050)
        }
    }
}
