import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

@Suite struct FirstLastValueTests {
    private let empty = PromiseError.emptySequence

    @Test func ofAPromise() {
        inLoop { _ in
            let promise = Promise.value([1, 2, 3, 4])
            expect(promise.firstValue, gives: 1)
            expect(promise.lastValue, gives: 4)
            expect(promise.firstValue { $0 % 2 == 0 }, gives: 2)
            expect(promise.lastValue { $0 % 2 == 1 }, gives: 3)
            expect(promise.firstValue(where: { $0 > 2 }), gives: 3)
            expect(promise.lastValue(where: { $0 < 3 }), gives: 2)
            let many = promise.firstValue { number in
                let square = number * number
                return square > 5
            }
            expect(many, gives: 3)
        }
    }

    @Test func thereMayBeNone() {
        inLoop { _ in
            let promise = Promise.value([Int]())
            expect(promise.firstValue, failsWith: empty)
            expect(promise.lastValue, failsWith: empty)
            expect(Promise.value([1]).firstValue { $0 > 1 }, failsWith: empty)
            expect(Promise.value([1]).lastValue { $0 > 1 }, failsWith: empty)
            #expect("\(empty)" == "the sequence has no such element")
        }
    }

    @Test func ofAGuarantee() {
        inLoop { _ in
            let full = Guarantee.value([1, 2, 3, 4])
            let first: Guarantee<Int?> = full.firstValue
            let last: Guarantee<Int?> = full.lastValue
            expect(first, gives: 1)
            expect(last, gives: 4)
            let even: Guarantee<Int?> = full.firstValue { $0 % 2 == 0 }
            let odd: Guarantee<Int?> = full.lastValue { $0 % 2 == 1 }
            expect(even, gives: 2)
            expect(odd, gives: 3)
            let none = Guarantee.value([Int]())
            expect(none.firstValue, gives: nil)
            expect(none.lastValue, gives: nil)
            expect(full.firstValue { $0 > 4 }, gives: nil)
            expect(full.lastValue { $0 > 4 }, gives: nil)
        }
    }

    @Test func elementsThatAreNilAreElements() {
        inLoop { _ in
            let promise = Promise.value([Int?.none, 2])
            expect(promise.firstValue, gives: nil)
            expect(promise.firstValue { $0 == nil }, gives: nil)
            expect(Promise.value([2, Int?.none]).lastValue, gives: nil)
        }
    }

    @Test func theFirstOfAnySequenceAndNoMoreOfIt() {
        inLoop { _ in
            var pulled = 0
            let numbers = AnySequence {
                AnyIterator { () -> Int? in
                    pulled += 1
                    return pulled
                }
            }
            expect(Promise.value(numbers).firstValue, gives: 1)
            #expect(pulled == 1)
            expect(Promise.value(numbers).firstValue { $0 > 3 }, gives: 4)
            #expect(pulled == 4)
        }
    }

    @Test func theLastIsSoughtFromTheEnd() {
        inLoop { _ in
            var asked: [Int] = []
            let promise = Promise.value([1, 2, 3]).lastValue {
                asked.append($0)
                return $0 == 2
            }
            expect(promise, gives: 2)
            #expect(asked == [3, 2])
        }
    }

    @Test func aThrowRejects() {
        inLoop { _ in
            expect(Promise.value([1]).firstValue { _ in throw Flaw(1) }, failsWith: Flaw(1))
            expect(Promise.value([1]).lastValue { _ in throw Flaw(2) }, failsWith: Flaw(2))
        }
    }
}
