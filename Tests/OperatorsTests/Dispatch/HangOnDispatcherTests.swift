@testable import PromisesTestSupport

/// A `hang` knows that a dispatcher has a handler of its thread, and so does not report that its promise cannot be
/// settled. For jobs of a `ThreadPool`, which the loop counts, see `OnThreadPoolTests`.
struct HangOnDispatcherTests {
    private let shelf = Shelf()

    /// True if a `hang` on this thread would find that its promise may be settled.
    private var hasHope: Bool { EventLoop.current.canWakeItself }

    @Test(.inLoop) func aHangOnAHandlerOfAnotherLoopIsSilent() throws {
        let worker = try EventLoop.spawn(name: "worker")
        let lines = logged {
            EventLoop.withLoop { loop in
                let (gate, begun) = (Gate(), Gate())
                let mapped = Promise.value(1).map(on: worker) { value in
                    begun.open()
                    gate.wait()
                    return value + 1
                }
                begun.wait()
                let watch = loop.beforeWaiting { gate.open() }
                expect(mapped, gives: 2)
                watch.cancel()
            }
        }
        worker.stop()
        worker.join()
        expectEqual(lines, [])
    }

    @Test(.inLoop) func fromTheSettlementOfItsSourceUntilTheHandlerHasRun() {
        let (source, resolver) = Promise<Int>.pending()
        let mapped = source.map(on: shelf) { $0 + 1 }
        expect(!hasHope)
        resolver.fulfill(1)
        expect(hasHope && !EventLoop.current.isAlive)
        shelf.run()
        expect(!hasHope && mapped.settledValue == 2)
    }

    @Test(.inLoop) func andWhatItHasReturnedHasSettled() {
        let (inner, resolver) = Promise<Int>.pending()
        let outer = Promise.value(1).then(on: shelf) { _ in inner }
        shelf.run()
        expect(hasHope)
        resolver.fulfill(3)
        expect(!hasHope && outer.settledValue == 3)
    }

    @Test(.inLoop) func notForAHandlerThatIsPassedByRefusedOrReleased() {
        let passed = Promise<Int>(error: Flaw()).map(on: shelf) { $0 + 1 }
        expect(!hasHope && passed.flaw == Flaw())
        let refused = Promise.value(1).map(on: Refuser()) { $0 + 1 }
        expect(!hasHope && refused.flaw == Flaw(503))
        let released = Promise.value(1).map(on: shelf) { $0 + 1 }
        expectEqual(logged { shelf.clear() }.count, 1)
        expect(!hasHope && released.isRejected)
    }

    @Test(.inRealTime) func aCancellationOnAnotherThreadLeavesNothingCounted() {
        let loop = EventLoop.current
        for _ in 0..<scaled(2000) {
            let (source, resolver) = Promise<Int>.pending()
            let mapped = source.map(on: shelf) { $0 + 1 }
            let thread = TestThread { mapped.cancel() }
            resolver.fulfill(1)
            thread.join()
            shelf.run()
            expect(!mapped.isPending)
        }
        // The other thread's settlement has been posted here.
        while loop.isReady { try? loop.turn(.poll) }
        expect(!hasHope)
    }

    @Test(.inLoop) func aCleanupThatIsDispatchedAgainIsCountedOnce() {
        let (source, resolver) = Promise<Int>.pending()
        let cleaned = source.ensure(on: shelf) {}
        cleaned.cancel()
        expect(hasHope)
        shelf.run()
        expect(!hasHope && cleaned.isCancelled)
        resolver.fulfill(1)
        expect(!hasHope)
    }
}
