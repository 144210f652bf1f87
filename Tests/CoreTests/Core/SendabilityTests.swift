@testable import PromisesTestSupport

/// Handlers stay on the thread that attached them, so they may capture non-Sendable objects. The test is that this
/// compiles; it also runs.
struct SendabilityTests {
    private final class Ledger {
        var entries: [Int] = []
    }

    @Test(.inLoop) func handlersMayCaptureAnything() throws {
        let loop = EventLoop.current
        let ledger = Ledger()
        var sum = 0
        Promise.value(1)
            .map { value -> Ledger in
                ledger.entries.append(value)
                return ledger
            }
            .then { ledger -> Promise<Ledger> in
                sum += ledger.entries.count
                return .value(ledger)
            }
            .get { $0.entries.append(2) }
            .tap { _ in sum += 1 }
            .ensure { ledger.entries.append(3) }
            .done { sum += $0.entries.count }
            .catch { _ in ledger.entries = [] }
            .finally { sum += 100 }
        try loop.run()
        expectEqual(ledger.entries, [1, 2, 3])
        expectEqual(sum, 105)
    }

    @Test func promisesOfSendableValuesCrossThreads() {
        let (promise, resolver) = Promise<[String]>.pending()
        let (guarantee, resolve) = Guarantee<Int>.pending()
        let seen = Shared<[String]>([])
        TestThread.run {
            resolver.fulfill(["a"])
            seen.change { $0 = promise.settledValue ?? [] }
            _ = guarantee.isPending
        }
        resolve(1)
        expect(promise.settledValue == ["a"] && seen.value == ["a"] && guarantee.settledValue == 1)
    }

    @MainActor @Test func handlersMayUseTheirActorsState() throws {
        // Compiles without isolation annotations: the handler is not @Sendable, so it also belongs to the main actor.
        final class View {
            var text = ""
        }
        let view = View()
        try inLoop { loop throws in
            Promise.value("loaded").done { view.text = $0 }.orFail()
            try loop.run()
        }
        expectEqual(view.text, "loaded")
    }
}
