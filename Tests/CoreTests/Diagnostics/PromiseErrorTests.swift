@testable import PromisesTestSupport

struct PromiseErrorTests {
    private final class Unique: Error {}
    private struct Opaque: Error {
        let text: String
    }

    private static let all: [PromiseError] = [
        .cancelled, .timedOut, .returnedSelf, .abandoned, .loopEnded, .invalidCallingConvention,
        .badInput("race of nothing"),
        .compactMap(value: "x", type: "Int"), .emptySequence, .noWinner([Flaw(1), Flaw(2)]),
        .badInput("b"), .compactMap(value: "y", type: "Int"), .compactMap(value: "x", type: "Double"),
    ]

    @Test func eachIsEqualToItselfOnly() {
        for (index, error) in Self.all.enumerated() {
            for (other, another) in Self.all.enumerated() { expectEqual((error == another), (index == other)) }
        }
    }

    @Test func theErrorsOfLosersAreCompared() {
        let unique = Unique()
        expectEqual(PromiseError.noWinner([Flaw(1), unique]), .noWinner([Flaw(1), unique]))
        expect(PromiseError.noWinner([Flaw(1)]) != .noWinner([Flaw(2)]))
        expect(PromiseError.noWinner([Flaw(1)]) != .noWinner([Flaw(1), Flaw(1)]))
        expect(PromiseError.noWinner([Flaw(1)]) != .noWinner([PromiseError.timedOut]))
        expect(PromiseError.noWinner([unique]) != .noWinner([Unique()]))
        expectEqual(PromiseError.noWinner([Opaque(text: "a")]), .noWinner([Opaque(text: "a")]))
        expect(PromiseError.noWinner([Opaque(text: "a")]) != .noWinner([Opaque(text: "b")]))
        expect(PromiseError.noWinner([Opaque(text: "a")]) != .noWinner([unique]))
    }

    @Test func descriptionsAreSentences() {
        expectEqual("\(PromiseError.noWinner([]))", "none of 0 promises was fulfilled")
        expectEqual(
            "\(PromiseError.noWinner([Flaw(1), Flaw(2)]))",
            "none of 2 promises was fulfilled; the first was rejected with: Flaw(number: 1)")
    }

    @Test func fewMeanCancelled() {
        struct Maybe: CancellableError { let isCancelled: Bool }
        expectEqual(Self.all.filter(\.isCancelled), [.cancelled])
        expect(CancellationError().isCancelled && Maybe(isCancelled: true).isCancelled)
        let others: [any Error] = [CancellationError(), Maybe(isCancelled: true), Maybe(isCancelled: false), Flaw()]
        expectEqual((Self.all + others).filter(\.isCancelled).count, 3)
    }

    @Test(.inLoop) func aRaceWhosePromisesAreAllCancelledIsCancelled() throws {
        let lines = try logged {
            let promises = [endless(), endless()]
            let winner = race(fulfilled: promises)
            for promise in promises { promise.cancel() }
            try EventLoop.current.turn(.poll)
            expect(winner.isCancelled)
        }
        expectEqual(lines, [])
    }
}
