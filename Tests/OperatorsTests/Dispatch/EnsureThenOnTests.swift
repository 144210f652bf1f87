@testable import PromisesTestSupport

/// `ensureThen(on:)` and `finally(on:)`.
struct EnsureThenOnTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func theOutcomeWaitsForTheCleanup() throws {
        for source in [Promise.value(1), Promise<Int>(error: Flaw(2))] {
            let shelf = Shelf()
            let (cleanup, finish) = Guarantee<Void>.pending()
            let promise = source.ensureThen(on: shelf) { cleanup }
            promise.ignoringErrors()
            try loop.run()
            expect(promise.isPending && shelf.count == 1)
            shelf.run()
            try loop.run()
            expect(promise.isPending)
            finish(())
            try loop.run()
            expect(promise.settledValue == source.settledValue && promise.flaw == source.flaw)
            expect(promise.isResolved)
        }
    }

    @Test(.inLoop) func aCancelledChainCleansUp() throws {
        let shelf = Shelf()
        let (cleanup, finish) = Guarantee<Void>.pending()
        let source = endless()
        let promise = source.ensureThen(on: shelf) { cleanup }
        promise.ignoringErrors()
        promise.cancel()
        try loop.run()
        expect(source.isCancelled && promise.isPending && shelf.count == 1)
        shelf.run()
        try loop.run()
        expect(promise.isPending)
        finish(())
        try loop.run()
        expect(promise.isCancelled)
    }

    @Test(.inLoop) func aJobThatNeverRunsHoldsNothingUp() throws {
        let shelf = Shelf()
        let lines = try logged {
            expect(Promise.value(1).ensureThen(on: Refuser()) { .value }, gives: 1)
            let promise = Promise.value(2).ensureThen(on: shelf) { .value }
            try loop.run()
            shelf.clear()
            expect(promise, gives: 2)
        }
        expectEqual(lines.count, 2)
    }

    @Test(.inLoop) func anAbandonedCleanupHasEnded() throws {
        let lines = try logged {
            let promise = Promise.value(1).ensureThen(on: nil) { Guarantee<Void>.pending().guarantee }
            expect(promise, gives: 1)
            try loop.run()
        }
        expectEqual(lines.count, 1)
    }
}

struct FinallyOnTests {
    @Test(.inLoop) func runsWhateverTheOutcomeIs() throws {
        let loop = EventLoop.current
        let shelf = Shelf()
        let log = Shared<[String]>([])
        Promise.value(1).catch { _ in }.finally(on: shelf) { log.change { $0.append("value") } }
        Promise<Int>(error: Flaw()).catch { _ in log.change { $0.append("catch") } }
            .finally(on: shelf) { log.change { $0.append("error") } }
        Promise<Int>(error: PromiseError.cancelled).cauterize()
            .finally(on: shelf) { log.change { $0.append("cancelled") } }
        try loop.run()
        expect(log.value == ["catch"] && shelf.count == 3)
        shelf.run()
        expectEqual(log.value.sorted(), ["cancelled", "catch", "error", "value"])
    }
}
