import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// What the closures of these operators hold is let go once they have run or never will.
@Suite struct OperatorReleaseTests {
    private let tally = Tally()

    private func attachAll(to promise: Promise<[Int]>) {
        for operation in 0..<Self.count {
            let token = tally.token()
            switch operation {
            case 0: promise.compactMap { _ in token.use() }.ignoringErrors()
            case 1: promise.getThen { _ in Promise.value(token.use()) }.ignoringErrors()
            case 2: promise.getThen { _ in after(.zero).map { token.use() } }.ignoringErrors()
            case 3: promise.validate { _ in token === token }.ignoringErrors()
            case 4: promise.mapError { error in withExtendedLifetime(token) { error } }.ignoringErrors()
            case 5: promise.tapError { _ in token.use() }.ignoringErrors()
            case 6: promise.catch(only: Flaw.self) { _ in token.use() }.cauterize()
            case 7: promise.catch(only: Flaw()) { token.use() }.cauterize()
            case 8:
                let finalizer = promise.catch(only: Flaw.self) { _ in }
                finalizer.finally { token.use() }
                finalizer.cauterize()
            case 9: promise.recover(only: Flaw.self) { _ in Promise.value([token].map { _ in 1 }) }.ignoringErrors()
            case 10: promise.recover(only: Flaw()) { Promise.value([token].map { _ in 1 }) }.ignoringErrors()
            case 11: promise.asVoid().recover(only: Flaw.self) { _ in token.use() }.ignoringErrors()
            case 12: promise.mapValues { _ in token.use() }.ignoringErrors()
            case 13: promise.sortedValues { one, other in token === token && one < other }.ignoringErrors()
            default: promise.firstValue { _ in token === token }.ignoringErrors()
            }
        }
    }

    private static let count = 15

    @Test(arguments: [false, true]) func afterSettling(isFulfilled: Bool) throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<[Int]>.pending()
            attachAll(to: promise)
            #expect(tally.alive == Self.count)
            if isFulfilled { resolver.fulfill([2, 1]) } else { resolver.reject(Flaw()) }
            try loop.run()
            // Although the promise lives on.
            #expect(tally.alive == 0)
            #expect(promise.isResolved)
        }
    }

    @Test func ofAPromiseThatIsNeverSettled() throws {
        let lines = try logged {
            try inLoop { loop throws in
                attachAll(to: Promise { _ in })
                try loop.run()
                #expect(tally.alive == 0)
            }
        }
        // Abandoned, and cauterized three times.
        #expect(lines.count == 4)
    }

    @Test func ofAPromiseThatIsCancelled() throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<[Int]>.pending()
            attachAll(to: promise)
            promise.cancel()
            try loop.run()
            #expect(tally.alive == 0)
            withExtendedLifetime((promise, resolver)) {}
        }
    }

    @Test func whenTheLoopEndsBeforeTheyRun() {
        let lines = logged {
            inLoop { _ in
                let (promise, resolver) = Promise<[Int]>.pending()
                attachAll(to: promise)
                resolver.fulfill([1])
                #expect(tally.alive == Self.count)
            }
        }
        #expect(tally.alive == 0)
        #expect(lines.count == 1)
    }

    @Test func aWithdrawnOperationAtOnce() {
        inLoop { _ in
            let (promise, resolver) = Promise<Int>.pending()
            let derived = {
                let tokens = (0..<3).map { _ in tally.token() }
                return promise.compactMap { value in withExtendedLifetime(tokens[0]) { value } }
                    .mapError { error in withExtendedLifetime(tokens[1]) { error } }
                    .getThen { _ in Promise.value(tokens[2].use()) }
            }()
            #expect(tally.alive == 3)
            derived.cancel()
            #expect(tally.alive == 0 && promise.isCancelled)
            withExtendedLifetime(resolver) {}
        }
    }

    /// The value waits for the side effect, and no longer.
    @Test func theValueOfAGetThen() throws {
        try inLoop { loop throws in
            let (effect, resolver) = Promise<Void>.pending()
            let size = { Promise.value(tally.token()).getThen { _ in effect }.map { _ in 1 } }()
            try loop.run()
            #expect(tally.alive == 1)
            resolver.fulfill()
            try loop.run()
            #expect(tally.alive == 0 && size.settledValue == 1)
        }
    }
}
