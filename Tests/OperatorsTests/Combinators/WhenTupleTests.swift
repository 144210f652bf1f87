@testable import PromisesTestSupport

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
