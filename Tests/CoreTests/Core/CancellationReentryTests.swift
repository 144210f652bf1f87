@testable import Promises
@testable import PromisesTestSupport

/// A cancellation drops closures, whose captures run code: that may cancel again, settle, or turn the loop.
struct CancellationReentryTests {
    private let loop = EventLoop.current

    /// `promise`, with a closure that calls `body` when it is dropped.
    private func dropping(_ promise: Promise<Int>, _ body: @escaping () -> Void) -> Promise<Int> {
        let token = LastWords(body)
        return promise.map {
            token.use()
            return $0
        }
    }

    @Test(.inLoop, arguments: 0..<5, [false, true]) func whatIsDroppedActs(act: Int, hasCleanUp: Bool) throws {
        var lines: [String] = []
        let (source, resolver) = Promise<Int>.pending()
        resolver.onCancel { lines.append("stopped") }
        let upper = source.map { $0 }
        let other = endless()
        let cleaned = hasCleanUp ? upper.ensure { lines.append("clean") } : upper
        let lower = dropping(cleaned) {
            switch act {
            case 0: upper.cancel(with: Flaw(1))
            case 1: source.cancel()
            case 2: resolver.fulfill(1)
            case 3: resolver.reject(Flaw(2))
            default: _ = try? loop.turn(.poll)
            }
        }
        let end = when(fulfilled: lower, other).map { $0.0 }
        end.cancel()
        #expect(throws: PromiseError.cancelled) { try hang(end) }
        try loop.run()
        expectEqual(lines.filter { $0 == "clean" }.count, hasCleanUp ? 1 : 0)
        expect(!source.isPending && !upper.isPending && !other.isPending && lower.isCancelled)
        expectEqual(lines.filter { $0 == "stopped" }.count, 1)
    }

    /// The limit of time drops what the promise waits for, and does not wait for the clean-up, which runs.
    @Test(.inLoop) func aLimitOfACleanUp() throws {
        var isCleaned = false
        let cleaned = endless().ensure { isCleaned = true }
        cleaned.core.cancelNow(with: PromiseError.timedOut)
        #expect(throws: PromiseError.timedOut) { try hang(cleaned) }
        expect(isCleaned)
    }
}

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
            EventLoop.withLoop { loop in
                let tally = Tally()
                let (source, resolver) = Promise<Int>.pending()
                let last = self.row(scaled(100_000), source, tally)
                last.cancel()
                try? loop.run()
                expect(tally.alive == 0 && source.isRejected)
                withExtendedLifetime(resolver) {}
            }
        }
    }

    @Test(.inLoop) func aHangInOneOfThemCancelsTheOthers() throws {
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
        try EventLoop.current.run()
        expectEqual(seen, [true])
        withExtendedLifetime(resolver) {}
    }

    /// The promise that the handler returns then is not wanted, and its cancellation is no error of the chain.
    @Test(.inLoop, arguments: [false, true]) func aHandlerOfACancellationCancelsItsOwnPromise(hasError: Bool) throws {
        var promise: Promise<Int>?
        let late = endless()
        promise = endless().recover(policy: .allErrors) { _ throws -> Promise<Int> in
            promise?.cancel()
            return late
        }
        if hasError { promise?.cancel(with: Flaw(1)) } else { promise?.cancel() }
        try EventLoop.current.run()
        expect(hasError ? promise?.flaw == Flaw(1) : promise?.isCancelled == true)
        expect(late.isCancelled)
        promise = nil
    }

    /// A handler that returns its own promise, itself or through others, after a cancellation.
    @Test(.inLoop, arguments: [false, true], [false, true])
    func aHandlerOfACancellationReturnsItsOwnPromise(hasError: Bool, isDerived: Bool) throws {
        var (promise, returned): (Promise<Int>?, Promise<Int>?)
        promise = endless().recover(policy: .allErrors) { _ throws -> Promise<Int> in returned! }
        returned = isDerived ? promise?.map { $0 } : promise
        if hasError { promise?.cancel(with: Flaw(1)) } else { promise?.cancel() }
        try EventLoop.current.run()
        // A circle waits until it is cancelled again.
        if !hasError && isDerived { promise?.cancel() }
        try EventLoop.current.run()
        expect(hasError ? promise?.flaw == Flaw(1) : promise?.isRejected == true)
        (promise, returned) = (nil, nil)
    }

    /// A promise that waits only to be rejected is returned by a handler that it waits for, itself or below other levels.
    @Test(.inLoop, arguments: zip([1, 2, 1], [false, false, true]))
    func aHandlerReturnsAPromiseThatWillBeRejected(levels: Int, isDerived: Bool) throws {
        var circle: Promise<Int>?
        func level(_ left: Int) -> Promise<Int> {
            endless().recover(policy: .allErrors) { _ throws -> Promise<Int> in left == 1 ? circle! : level(left - 1) }
        }
        circle = isDerived ? level(levels).map { $0 } : level(levels)
        circle?.cancel(with: Flaw(1))
        try EventLoop.current.run()
        expect(circle?.flaw == Flaw(1))
        circle = nil
    }
}
