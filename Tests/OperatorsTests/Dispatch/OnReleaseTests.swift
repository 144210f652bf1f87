@testable import PromisesTestSupport

/// When closures, values and sources are released.
struct OnReleaseTests {
    /// A handler that receives the outcome, on any thread, runs after the closure has been released.
    @Test(.inRealTime) func theClosureGoesBeforeTheResultSettles() throws {
        for _ in 0..<scaled(2000) {
            let tally = Tally()
            let mapped = { [token = tally.token()] in
                Promise.value(1).map(on: ThreadPool.shared) { token.with($0) }
            }()
            expectEqual(try hang(mapped.map { _ in tally.alive }), 0)
        }
    }

    @Test(.inLoop) func theSourceGoesBeforeTheResultSettles() {
        let shelf = Shelf()
        let (tally, alive) = (Tally(), Shared(-1))
        let mapped = { Promise.value(tally.token()).map(on: shelf) { _ in 1 } }()
        mapped.done(on: nil) { _ in alive.change { $0 = tally.alive } }.orFail()
        expectEqual(tally.alive, 1)
        shelf.run()
        expectEqual(alive.value, 0)
    }

    @Test(.inLoop) func aHandlerMayHoldItsOwnPromise() {
        let tally = Tally()
        inLoop { _ in
            let (source, resolver) = Promise<Int>.pending()
            let box = Shared<Promise<Int>?>(nil)
            let mapped = { [token = tally.token()] in
                source.map(on: nil) { _ in
                    defer { box.change { $0 = nil } }
                    return token.with(box.value == nil ? 0 : 1)
                }
            }()
            box.change { $0 = mapped }
            resolver.fulfill(1)
            expectEqual(mapped.settledValue, 1)
        }
        expectEqual(tally.alive, 0)
    }

    /// The job in a dispatcher does not hold the dispatcher.
    @Test(.inLoop) func aDispatcherThatIsReleasedReleasesItsJobs() {
        let tally = Tally()
        var shelf: Shelf? = Shelf()
        let mapped = { [token = tally.token()] in Promise.value(1).map(on: shelf) { token.with($0) } }()
        expect(mapped.isPending && tally.alive == 1)
        let lines = logged { shelf = nil }
        expect(mapped.error as? PromiseError == .abandoned && tally.alive == 0 && lines.count == 1)
    }
}
