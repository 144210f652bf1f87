import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

private struct Person {
    let name: String
    let friends: [String]
    var nickname: String?
}

/// What `mapValues` and its kin make of the elements of a value.
@Suite struct MapValuesTests {
    private let people = [Person(name: "Ada", friends: ["Bo", "Cy"], nickname: "A"), Person(name: "Di", friends: [])]

    @Test func ofAPromise() {
        inLoop { _ in
            let promise = Promise.value([3, 1, 2])
            expect(promise.mapValues { $0 * 2 }, gives: [6, 2, 4])
            expect(promise.flatMapValues { [$0, $0] }, gives: [3, 3, 1, 1, 2, 2])
            expect(promise.compactMapValues { $0 > 1 ? "\($0)" : nil }, gives: ["3", "2"])
            expect(promise.filterValues { $0 != 1 }, gives: [3, 2])
        }
    }

    @Test func ofAGuarantee() {
        inLoop { _ in
            let guarantee = Guarantee.value([3, 1, 2])
            let mapped: Guarantee<[Int]> = guarantee.mapValues { $0 * 2 }
            let flat: Guarantee<[Int]> = guarantee.flatMapValues { [$0, $0] }
            let compact: Guarantee<[String]> = guarantee.compactMapValues { $0 > 1 ? "\($0)" : nil }
            let filtered: Guarantee<[Int]> = guarantee.filterValues { $0 != 1 }
            expect(mapped, gives: [6, 2, 4])
            expect(flat, gives: [3, 3, 1, 1, 2, 2])
            expect(compact, gives: ["3", "2"])
            expect(filtered, gives: [3, 2])
        }
    }

    @Test func keyPaths() {
        inLoop { _ in
            let (promise, guarantee) = (Promise.value(people), Guarantee.value(people))
            expect(promise.mapValues(\.name), gives: ["Ada", "Di"])
            expect(promise.flatMapValues(\.friends), gives: ["Bo", "Cy"])
            expect(promise.compactMapValues(\.nickname), gives: ["A"])
            expect(promise.filterValues(\.friends.isEmpty).mapValues(\.name), gives: ["Di"])
            let names: Guarantee<[String]> = guarantee.mapValues(\.name)
            let friends: Guarantee<[String]> = guarantee.flatMapValues(\.friends)
            let nicknames: Guarantee<[String]> = guarantee.compactMapValues(\.nickname)
            let alone: Guarantee<[String]> = guarantee.filterValues(\.friends.isEmpty).mapValues(\.name)
            expect(names, gives: ["Ada", "Di"])
            expect(friends, gives: ["Bo", "Cy"])
            expect(nicknames, gives: ["A"])
            expect(alone, gives: ["Di"])
        }
    }

    @Test func closuresOfManyStatements() {
        inLoop { _ in
            let promise = Promise.value([1, 2])
            let mapped = promise.mapValues { number in
                let square = number * number
                return "\(square)"
            }
            expect(mapped, gives: ["1", "4"])
            let compact = promise.compactMapValues { number -> Int? in
                guard number > 1 else { return nil }
                return number
            }
            expect(compact, gives: [2])
        }
    }

    @Test func ofAnySequence() {
        inLoop { _ in
            expect(Promise.value(1...3).mapValues { $0 }, gives: [1, 2, 3])
            expect(Promise.value("abc").mapValues { "\($0)" }, gives: ["a", "b", "c"])
            expect(Promise.value(Set([1, 2])).filterValues { $0 == 2 }, gives: [2])
            expect(Guarantee.value(Set([1, 2])).filterValues { $0 == 2 }, gives: [2])
            expect(Promise.value([Int]()).mapValues { $0 }, gives: [])
            let once = AnySequence { AnyIterator([1, 2].makeIterator()) }
            expect(Promise.value(once).flatMapValues { 0..<$0 }, gives: [0, 0, 1])
        }
    }

    @Test func aThrowStopsAtOnce() {
        inLoop { _ in
            var calls = 0
            func fail(_ number: Int) throws -> Int {
                calls += 1
                if number == 2 { throw Flaw(number) }
                return number
            }
            let promise = Promise.value([1, 2, 3])
            expect(promise.mapValues(fail), failsWith: Flaw(2))
            expect(promise.flatMapValues { [try fail($0)] }, failsWith: Flaw(2))
            expect(promise.compactMapValues { Int?.some(try fail($0)) }, failsWith: Flaw(2))
            expect(promise.filterValues { try fail($0) > 0 }, failsWith: Flaw(2))
            #expect(calls == 8)
        }
    }

    @Test func aRejectionPassesThemBy() {
        inLoop { _ in
            let failed = Promise<[Int]>(error: Flaw(1))
            expect(failed.mapValues { $0 }, failsWith: Flaw(1))
            expect(failed.sortedValues(), failsWith: Flaw(1))
            expect(failed.firstValue, failsWith: Flaw(1))
            expect(failed.lastValue { _ in true }, failsWith: Flaw(1))
        }
    }
}

@Suite struct SortedValuesTests {
    @Test func byTheirOwnOrder() {
        inLoop { _ in
            expect(Promise.value([3, 1, 2]).sortedValues(), gives: [1, 2, 3])
            let sorted: Guarantee<[Int]> = Guarantee.value([3, 1, 2]).sortedValues()
            expect(sorted, gives: [1, 2, 3])
        }
    }

    @Test func byAnother() {
        inLoop { _ in
            expect(Promise.value([3, 1, 2]).sortedValues { $0 > $1 }, gives: [3, 2, 1])
            expect(Promise.value([3, 1, 2]).sortedValues(>), gives: [3, 2, 1])
            let sorted: Guarantee<[Int]> = Guarantee.value([3, 1, 2]).sortedValues { $0 > $1 }
            expect(sorted, gives: [3, 2, 1])
            let byFunction: Guarantee<[Int]> = Guarantee.value([3, 1, 2]).sortedValues(>)
            expect(byFunction, gives: [3, 2, 1])
        }
    }

    @Test func aThrowRejects() {
        inLoop { _ in
            expect(Promise.value([3, 1, 2]).sortedValues { _, _ in throw Flaw(1) }, failsWith: Flaw(1))
        }
    }
}
