@testable import PromisesTestSupport

/// Each way to write a combinator compiles without annotations, and selects the documented form.
struct OverloadRankingTests {
    private let one = Promise.value(1)
    private let two = Guarantee.value(2)
    private let text = Promise.value("text")
    private let void = Promise<Void>.value
    private let wait = Guarantee<Void>.value

    @Test(.inLoop) func whenOfOne() throws {
        let single = when(fulfilled: one)
        let number: Int = try hang(single)
        let list = when(fulfilled: [one])
        let numbers: [Int] = try hang(list)
        expect(number == 1 && numbers == [1])
    }

    @Test(.inLoop) func whenOfVoids() throws {
        let tuple = when(fulfilled: void, void, void)
        let _: Promise<(Void, Void, Void)> = tuple
        let _: Promise<Void> = when(fulfilled: [void, void])
        let _: Promise<[Void]> = when(fulfilled: [void, void])
        let _: Promise<Void> = when(fulfilled: [wait])
        try hang(firstly { when(fulfilled: void, wait) }.asVoid())
        try hang(void.then { when(fulfilled: void, wait) }.done { _, _ in })
        try hang(void.then { () -> Promise<Void> in when(fulfilled: [void, void]) })
    }

    @Test(.inLoop) func whenOfAMixture() throws {
        let numbers = when(fulfilled: [one, two, Foreign([.success(2)])])
        let _: Promise<[Int]> = numbers
        let typed: [any Thenable<Int>] = [one, two]
        expectEqual(try hang(when(fulfilled: typed)), [1, 2])
    }

    @Test(.inLoop) func whenOfLists() throws {
        expectEqual(try hang(when(fulfilled: [two, two])), [2, 2])
        let strict = when(fulfilled: (1...3).map { Promise.value($0) })
        let lazy = when(fulfilled: (1...3).lazy.map { Promise.value($0) })
        expect(try hang(strict) == [1, 2, 3] && hang(lazy) == [1, 2, 3])
        expectEqual(try hang(when(fulfilled: ["a": one].values)), [1])
        let none: Promise<[Int]> = when(fulfilled: [Promise<Int>]())
        let nothing: Promise<Void> = when(fulfilled: [Promise<Void>]())
        try hang(nothing)
        expectEqual(try hang(none), [])
    }

    @Test(.inLoop) func whenResolved() throws {
        let mixed = when(resolved: one, text)
        let (number, word) = hang(mixed)
        expect(try number.get() == 1 && word.get() == "text")
        let sum = when(resolved: one, one).map { left, right in (try? left.get()) == (try? right.get()) }
        expect(hang(sum))
        let (left, right) = hang(when(resolved: one, one))
        expectEqual(try left.get(), try right.get())
        expectEqual(hang(when(resolved: [two])).count, 1)
        let lazy = when(resolved: (1...3).lazy.map { Promise.value($0) })
        expectEqual(hang(lazy).count, 3)
        let none = when(resolved: [Promise<Int>]())
        expect(hang(none).isEmpty)
    }

    @Test(.inLoop) func whenGuarantees() {
        expectEqual(hang(when(guarantees: [two, two])), [2, 2])
        let (number, word) = hang(when(guarantees: two, .value("a")))
        expect(number == 2 && word == "a")
        let _: Guarantee<(Void, Void)> = when(guarantees: wait, wait)
        let _: Guarantee<[Void]> = when(guarantees: [wait, wait])
        let none: Guarantee<[Int]> = when(guarantees: [])
        expectEqual(hang(none), [])
    }

    @Test(.inLoop) func races() throws {
        let guarantee: Guarantee<Int> = race(two, two)
        let inferred = race(two, two)
        let _: Guarantee<Int> = inferred
        let promise = race(one, one)
        let _: Promise<Int> = promise
        let mixed = race(one, two)
        let _: Promise<Int> = mixed
        let custom = race(Foreign([.success(2)]), two, one)
        let list = race([two, two])
        let single = race(one)
        let voids = race(void, wait)
        try hang(voids)
        expectEqual(try hang(custom) + hang(list) + hang(single) + hang(guarantee), 7)
        let limited = race(one, after(.seconds(1)).then { Promise<Int>(error: PromiseError.timedOut) })
        expectEqual(try hang(limited), 1)
    }

    @Test(.inLoop) func soManyAtATime() throws {
        expectEqual(try hang(when(fulfilled: [one, one], concurrently: 2) { $0 }), [1, 1])
        let counted = when(fulfilled: [1, 2], concurrently: 1) { number in
            let twice = number * 2
            return Promise.value(twice)
        }
        let certain = when(fulfilled: ["a": 1], concurrently: 1) { Guarantee.value($0.value) }
        expect(try hang(counted) == [2, 4] && hang(certain) == [1])
        let tried = when(fulfilled: 1..., concurrently: 2) { number throws -> Promise<Int> in throw Flaw(number) }
        tried.cancel()
    }

    @Test(.inLoop) func oneByOne() throws {
        let promise = forEach([1, 2]) { _ in one }
        let _: Promise<Void> = promise
        let ofGuarantees = forEach([1, 2]) { _ in two }
        let _: Promise<Void> = ofGuarantees
        try hang(forEach([1, 2]) { number throws in number > 2 ? wait : .value })
        let again = repeatWhile { one.map { $0 > 1 } }
        let _: Promise<Void> = again
        let surely = repeatWhile { two.map { $0 > 2 } }
        let _: Promise<Void> = surely
        var turn = 0
        let several = repeatWhile {
            turn += 1
            return Promise.value(turn < 3)
        }
        try hang(several)
        expectEqual(turn, 3)
    }

    @Test(.inLoop) func elements() throws {
        let list = Promise.value([1, 2])
        let sure = Guarantee.value([1, 2])
        let mapped = list.thenMap { Promise.value($0) }
        let _: Promise<[Int]> = mapped
        let _: Promise<[Int]> = list.thenMap { Guarantee.value($0) }
        let _: Promise<[Int]> = sure.thenMap { Promise.value($0) }
        let folded = list.thenReduce("") { text, number in
            let longer = text + "\(number)"
            return Promise.value(longer)
        }
        expectEqual(try hang(folded), "12")
        let sum = sure.thenReduce(0) { Guarantee.value($0 + $1) }
        expectEqual(try hang(sum), 3)
        try hang(list.then { forEach($0) { _ in void } })
    }
}

/// A closure of one expression can use the members of the values of `when`, although its type contains a parameter
/// pack.
struct WhenTupleTests {
    private let loop = EventLoop.current

    private final class Page {
        let length: Int
        init(_ length: Int) { self.length = length }
    }
    private func page(_ length: Int) -> Promise<Page> { .value(Page(length)) }
    private func sure(_ length: Int) -> Guarantee<Page> { .value(Page(length)) }

    @Test(.inLoop) func ofFulfilled() throws {
        var sum = 0
        when(fulfilled: page(1), sure(2)).done { a, b in sum += a.length + b.length }.orFail()
        when(fulfilled: page(1), sure(2), page(3)).done { a, b, c in sum += a.length + c.length }.orFail()
        try loop.run()
        expectEqual(sum, 7)
        expect(when(fulfilled: page(1), page(2), page(3)).map { $0.length + $2.length }, gives: 4)
        let four = when(fulfilled: page(1), page(2), page(3), sure(4)).map { $0.length + $3.length }
        expect(four, gives: 5)
        let five = when(fulfilled: page(1), page(2), page(3), sure(4), page(5)).map { a, b, c, d, e in
            e.length - a.length
        }
        expect(five, gives: 4)
    }

    /// The types are known before those of the literals.
    @Test(.inLoop) func comparedWithLiterals() throws {
        let (bytes, sure) = (Promise<[UInt8]>.value([1]), Guarantee<[UInt8]>.value([2]))
        expect(try hang(when(fulfilled: bytes, sure)) == ([1], [2]))
        expect(when(fulfilled: bytes, sure).map { $0.0 + $0.1 }, gives: [1, 2])
    }
}
