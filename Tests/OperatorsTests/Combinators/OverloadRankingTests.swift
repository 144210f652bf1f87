import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

/// That each way to write a combinator compiles without annotations, and means the form that is documented.
@Suite struct OverloadRankingTests {
    private let one = Promise.value(1)
    private let two = Guarantee.value(2)
    private let text = Promise.value("text")
    private let void = Promise<Void>.value
    private let wait = Guarantee<Void>.value

    @Test func whenOfTen() throws {
        try inLoop { _ throws in
            let all = when(
                fulfilled: one, two, text, void, wait, Doubled(one), Promise.value([1.5]), Guarantee<Int?>.value(nil),
                Promise<(Int, Int)>.value((8, 9)), Guarantee.value(true))
            let (a, b, c, _, _, d, e, f, g, h) = try hang(all)
            #expect(a == 1 && b == 2 && c == "text" && d == 2 && e == [1.5] && f == nil && g == (8, 9) && h)
        }
    }

    @Test func whenOfOne() throws {
        try inLoop { _ throws in
            let single = when(fulfilled: one)
            let number: Int = try hang(single)
            let list = when(fulfilled: [one])
            let numbers: [Int] = try hang(list)
            #expect(number == 1 && numbers == [1])
        }
    }

    @Test func whenOfVoids() throws {
        try inLoop { _ throws in
            let tuple = when(fulfilled: void, void, void)
            let _: Promise<(Void, Void, Void)> = tuple
            let _: Promise<Void> = when(fulfilled: void, void, void)
            let _: Promise<Void> = when(fulfilled: void, wait, void)
            let _: Promise<Void> = when(fulfilled: [void, void])
            let _: Promise<[Void]> = when(fulfilled: [void, void])
            let _: Promise<Void> = when(fulfilled: [wait])
            try hang(firstly { when(fulfilled: void, wait) }.asVoid())
            try hang(void.then { when(fulfilled: void, wait) }.done { _, _ in })
            try hang(void.then { () -> Promise<Void> in when(fulfilled: void, void, wait) })
        }
    }

    @Test func whenOfAMixture() throws {
        try inLoop { _ throws in
            let numbers = when(fulfilled: [one, two, Doubled(one)])
            let _: Promise<[Int]> = numbers
            let anything = when(fulfilled: [one, two, text])
            let _: Promise<[Any]> = anything
            let list: [any Thenable] = [one, text]
            let values = try hang(when(fulfilled: list))
            #expect("\(values)" == "[1, \"text\"]")
            let typed: [any Thenable<Int>] = [one, two]
            #expect(try hang(when(fulfilled: typed)) == [1, 2])
            let oneAsAny: [any Thenable] = []
            #expect(try hang(when(fulfilled: oneAsAny)).isEmpty)
        }
    }

    @Test func whenOfLists() throws {
        try inLoop { _ throws in
            #expect(try hang(when(fulfilled: [two, two])) == [2, 2])
            let strict = when(fulfilled: (1...3).map { Promise.value($0) })
            let lazy = when(fulfilled: (1...3).lazy.map { Promise.value($0) })
            #expect(try hang(strict) == [1, 2, 3] && hang(lazy) == [1, 2, 3])
            #expect(try hang(when(fulfilled: ["a": one].values)) == [1])
            let none: Promise<[Int]> = when(fulfilled: [])
            let nothing: Promise<Void> = when(fulfilled: [])
            try hang(nothing)
            #expect(try hang(none) == [])
        }
    }

    @Test func whenResolved() throws {
        try inLoop { _ throws in
            let list = when(resolved: one, one)
            let _: Guarantee<[Result<Int, any Error>]> = list
            let mixed = when(resolved: one, two, text)
            let (number, _, word) = hang(mixed)
            #expect(try number.get() == 1 && word.get() == "text")
            let sum = when(resolved: one, one).map { left, right in (try? left.get()) == (try? right.get()) }
            #expect(hang(sum))
            when(resolved: one, one).done { outcomes in
                let values = outcomes.compactMap { try? $0.get() }
                #expect(values == [1, 1])
            }
            let (left, right) = hang(when(resolved: one, one))
            #expect(try left.get() == right.get())
            #expect(hang(when(resolved: [two])).count == 1)
            #expect(hang(when(resolved: one)).count == 1)
            #expect(hang(when(resolved: [one, two])).count == 2)
            let lazy = when(resolved: (1...3).lazy.map { Promise.value($0) })
            #expect(hang(lazy).count == 3)
            let none: Guarantee<[Result<Int, any Error>]> = when(resolved: [])
            #expect(hang(none).isEmpty)
        }
    }

    @Test func whenNotAllRejected() throws {
        try inLoop { _ throws in
            #expect(try hang(when(notAllRejected: one, one)).count == 2)
            #expect(try hang(when(notAllRejected: [one, one])).count == 2)
            #expect(try hang(when(notAllRejected: one, two)).count == 2)
            #expect(try hang(when(notAllRejected: [one, two, Doubled(one)])).count == 3)
        }
    }

    @Test func whenGuarantees() {
        inLoop { _ in
            #expect(hang(when(guarantees: [two, two])) == [2, 2])
            let (number, word) = hang(when(guarantees: two, .value("a")))
            #expect(number == 2 && word == "a")
            let _: Guarantee<(Void, Void)> = when(guarantees: wait, wait)
            let _: Guarantee<Void> = when(guarantees: wait, wait, wait)
            let _: Guarantee<Void> = when(guarantees: [wait, wait])
            let _: Guarantee<[Void]> = when(guarantees: [wait, wait])
            let none: Guarantee<[Int]> = when(guarantees: [])
            #expect(hang(none) == [])
        }
    }

    @Test func races() throws {
        try inLoop { _ throws in
            let guarantee: Guarantee<Int> = race(two, two)
            let inferred = race(two, two)
            let _: Guarantee<Int> = inferred
            let promise = race(one, one)
            let _: Promise<Int> = promise
            let mixed = race(one, two)
            let _: Promise<Int> = mixed
            let custom = race(Doubled(one), two, one)
            let list = race([two, two])
            let mixedList = race([one, two])
            let single = race(one)
            let voids = race(void, wait)
            try hang(voids)
            #expect(try hang(custom) + hang(list) + hang(mixedList) + hang(single) + hang(guarantee) == 8)
            let limited = race(one, after(.seconds(1)).then { Promise<Int>(error: PromiseError.timedOut) })
            #expect(try hang(limited) == 1)
        }
    }

    @Test func racesForTheFirstValue() throws {
        try inLoop { _ throws in
            #expect(try hang(race(fulfilled: one, one)) == 1)
            #expect(try hang(race(fulfilled: [one, one])) == 1)
            #expect(try hang(race(fulfilled: one, two)) == 1)
            #expect(try hang(race(fulfilled: [one, two])) == 1)
            #expect(try hang(race(fulfilled: two)) == 2)
        }
    }

    @Test func soManyAtATime() throws {
        try inLoop { _ throws in
            #expect(try hang(when(fulfilled: [one, one].makeIterator(), concurrently: 2)) == [1, 1])
            let counted = when(fulfilled: [1, 2], concurrently: 1) { number in
                let twice = number * 2
                return Promise.value(twice)
            }
            let certain = when(fulfilled: ["a": 1], concurrently: 1) { Guarantee.value($0.value) }
            #expect(try hang(counted) == [2, 4] && hang(certain) == [1])
            let outcomes = try hang(when(resolved: AnyIterator([one].makeIterator()), concurrently: 3))
            #expect(outcomes.count == 1)
            let tried = when(resolved: 1..., concurrently: 2) { number throws -> Promise<Int> in throw Flaw(number) }
            tried.cancel()
        }
    }

    @Test func oneByOne() throws {
        try inLoop { _ throws in
            let promise = forEach([1, 2]) { _ in one }
            let _: Promise<Void> = promise
            let guarantee = forEach([1, 2]) { _ in two }
            let _: Guarantee<Void> = guarantee
            forEach([1, 2]) { _ in wait }
            try hang(forEach([1, 2]) { number throws in number > 2 ? wait : .value })
            let again = repeatWhile { one.map { $0 > 1 } }
            let _: Promise<Void> = again
            let surely = repeatWhile { two.map { $0 > 2 } }
            let _: Guarantee<Void> = surely
            var turn = 0
            let several = repeatWhile {
                turn += 1
                return Promise.value(turn < 3)
            }
            try hang(several)
            #expect(turn == 3)
        }
    }

    @Test func elements() throws {
        try inLoop { _ throws in
            let list = Promise.value([1, 2])
            let sure = Guarantee.value([1, 2])
            let mapped = list.thenMap { Promise.value($0) }
            let _: Promise<[Int]> = mapped
            let _: Promise<[Int]> = list.thenMap { Guarantee.value($0) }
            let certain = sure.thenMap { Guarantee.value($0) }
            let _: Guarantee<[Int]> = certain
            let _: Promise<[Int]> = sure.thenMap { Promise.value($0) }
            let _: Promise<[Int]> = sure.thenMap(concurrently: 1) { Guarantee.value($0) }
            let ended = sure.thenForEach { Guarantee.value($0) }
            let _: Guarantee<Void> = ended
            let folded = list.thenReduce("") { text, number in
                let longer = text + "\(number)"
                return Promise.value(longer)
            }
            #expect(try hang(folded) == "12")
            let sum = sure.thenReduce(0) { Guarantee.value($0 + $1) }
            #expect(hang(sum) == 3)
            let flat = list.thenFlatMap { Promise.value([$0, $0]) }
            #expect(try hang(flat) == [1, 1, 2, 2])
            sure.thenForEach { _ in wait }
            try hang(list.thenForEach { _ in void })
        }
    }
}

/// A thenable of another library.
private struct Doubled: Thenable {
    let promise: Promise<Int>

    init(_ promise: Promise<Int>) { self.promise = promise }

    var result: Result<Int, any Error>? { promise.result.map { $0.map { $0 * 2 } } }

    func pipe(to handler: @escaping @Sendable (Result<Int, any Error>) -> Void) {
        promise.pipe { handler($0.map { $0 * 2 }) }
    }
}
