import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// What the closures of these operators hold is released once they have run or never will.
@Suite struct OperatorReleaseTests {
    private let tally = Tally()

    private func attachAll(to promise: Promise<[Int]>) {
        for operation in 0..<Self.count {
            let token = tally.token()
            switch operation {
            case 0: promise.compactMap { _ in token.use() }.ignoringErrors()
            case 1: promise.validate { _ in token === token }.ignoringErrors()
            case 2: promise.mapError { error in withExtendedLifetime(token) { error } }.ignoringErrors()
            case 3: promise.tapError { _ in token.use() }.ignoringErrors()
            case 4: promise.catch(only: Flaw.self) { _ in token.use() }.cauterize()
            case 5: promise.catch(only: Flaw()) { token.use() }.cauterize()
            case 6: promise.recover(only: Flaw.self) { _ in Promise.value([token].map { _ in 1 }) }.ignoringErrors()
            case 7: promise.recover(only: Flaw()) { Promise.value([token].map { _ in 1 }) }.ignoringErrors()
            default: promise.thenMap { _ in Promise.value(token.use()) }.ignoringErrors()
            }
        }
    }

    private static let count = 9

    @Test(arguments: [false, true]) func afterSettling(isFulfilled: Bool) throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<[Int]>.pending()
            attachAll(to: promise)
            expectEqual(tally.alive, Self.count)
            if isFulfilled { resolver.fulfill([2, 1]) } else { resolver.reject(Flaw()) }
            try loop.run()
            // Although the promise lives on.
            expectEqual(tally.alive, 0)
            expect(promise.isResolved)
        }
    }

    @Test func ofAPromiseThatIsNeverSettled() throws {
        let lines = try logged {
            try inLoop { loop throws in
                attachAll(to: Promise { _ in })
                try loop.run()
                expectEqual(tally.alive, 0)
            }
        }
        // Abandoned, and cauterized twice.
        expectEqual(lines.count, 3)
    }

    @Test func ofAPromiseThatIsCancelled() throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<[Int]>.pending()
            attachAll(to: promise)
            promise.cancel()
            try loop.run()
            expectEqual(tally.alive, 0)
            withExtendedLifetime((promise, resolver)) {}
        }
    }

    @Test func whenTheLoopEndsBeforeTheyRun() {
        let lines = logged {
            inLoop { _ in
                let (promise, resolver) = Promise<[Int]>.pending()
                attachAll(to: promise)
                resolver.fulfill([1])
                expectEqual(tally.alive, Self.count)
            }
        }
        expectEqual(tally.alive, 0)
        expectEqual(lines.count, 1)
    }

    @Test func aWithdrawnOperationAtOnce() {
        inLoop { _ in
            let (promise, resolver) = Promise<Int>.pending()
            let derived = {
                let tokens = (0..<3).map { _ in tally.token() }
                return promise.compactMap { value in withExtendedLifetime(tokens[0]) { value } }
                    .mapError { error in withExtendedLifetime(tokens[1]) { error } }
                    .validate { _ in withExtendedLifetime(tokens[2]) { true } }
            }()
            expectEqual(tally.alive, 3)
            derived.cancel()
            expect(tally.alive == 0 && promise.isCancelled)
            withExtendedLifetime(resolver) {}
        }
    }
}
