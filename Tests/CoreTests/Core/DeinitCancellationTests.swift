@testable import PromisesTestSupport

/// Objects that cancel a promise in their deinit, and hold one another by the closures of those promises.
struct DeinitCancellationTests {
    private func row(_ count: Int, _ source: Promise<Int>, _ tally: Tally) -> Promise<Int> {
        var promise = source
        for _ in 0..<count {
            let owner = LastWords { [promise] in promise.cancel() }
            let token = tally.token()
            promise = source.map { value in
                withExtendedLifetime(owner) {}
                return token.with(value)
            }
        }
        return promise
    }

    @Test(.inLoop) func aLongRowIsCancelledWithoutRecursion() {
        TestThread.run {
            EventLoop.withLoop { _ in
                let tally = Tally()
                let (source, resolver) = Promise<Int>.pending()
                let last = self.row(scaled(100_000), source, tally)
                last.cancel()
                expect(tally.alive == 0 && source.isRejected)
                withExtendedLifetime(resolver) {}
            }
        }
    }

    @Test(.inLoop) func aHangInOneOfThemCancelsTheOthers() {
        var seen: [Bool] = []
        let (source, resolver) = Promise<Int>.pending()
        source.pipe { _ in }
        let (signal, signalResolver) = Promise<Int>.pending()
        let inner = {
            let signaller = LastWords { signalResolver.fulfill(1) }
            return source.map { value in withExtendedLifetime(signaller) { value } }
        }()
        let outer = {
            let hanger = LastWords {
                inner.cancel()
                _ = try? hang(signal)
                seen.append(signal.isResolved)
            }
            return source.map { value in withExtendedLifetime(hanger) { value } }
        }()
        outer.cancel()
        expectEqual(seen, [true])
        withExtendedLifetime(resolver) {}
    }
}
