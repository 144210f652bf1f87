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
        // What is cancelled twice, or has settled, is not stopped twice.
        expectEqual(lines.filter { $0 == "stopped" }.count, act == 2 || act == 3 ? 0 : 1)
    }

    /// While the lower promise is dropped, the handler of the upper one returns a promise that nobody wants any more.
    @Test(.inLoop) func whatIsReturnedMeanwhileIsCancelled() throws {
        var isStopped = false
        let (work, resolver) = Promise<Int>.pending()
        resolver.onCancel { isStopped = true }
        let upper = Promise.value(()).then { work.map { $0 } }
        let lower = dropping(upper) { _ = try? loop.turn(.poll) }
        lower.cancel()
        try loop.run()
        expect(isStopped && lower.isCancelled && upper.isCancelled && work.isCancelled)
    }

    enum Path: CaseIterable { case direct, map, maps, adopted, linked, combinator, nested, shared, cleanUp }

    /// A promise that waits for `work` in this way, and also for `other`.
    private func wait(by path: Path, for work: Promise<Int>, _ other: Promise<Int>) throws -> Promise<Int> {
        let made =
            switch path {
            case .direct: work
            case .map: work.map { $0 }
            case .maps: work.map { $0 }.map { $0 }.map { $0 }
            case .adopted: Promise.value(0).then { _ in work }
            case .linked: Promise.value(0).then { _ in work.map { $0 } }
            case .combinator: when(fulfilled: [work, other]).map { $0[0] }
            case .nested: race([when(fulfilled: [work.map { $0 }, other]).map { $0[0] }, other.map { $0 }])
            case .shared: when(fulfilled: [work.map { $0 }, work.map { $0 }]).map { $0[0] }
            case .cleanUp: work.ensure {}
            }
        try loop.turn(.poll)
        return made
    }

    /// The closure that the cancellation drops attaches a handler to the work, which then continues for it.
    @Test(.inLoop, arguments: Path.allCases) func workThatIsWantedMeanwhileContinues(path: Path) throws {
        var lines: [String] = []
        let (work, resolver) = Promise<Int>.pending()
        resolver.onCancel { lines.append("stopped") }
        let lower = dropping(try wait(by: path, for: work, endless())) {
            work.done { lines.append("got \($0)") }.catch(policy: .allErrors) { lines.append("\($0)") }
        }
        lower.cancel()
        expect(work.isPending)
        resolver.fulfill(7)
        try loop.run()
        expect(lower.isCancelled)
        expectEqual(lines, ["got 7"])
    }

    /// The limit of time drops what the promise waits for, and does not wait for the clean-up, which runs.
    @Test(.inLoop) func aLimitOfACleanUp() throws {
        var isCleaned = false
        let cleaned = endless().ensure { isCleaned = true }
        cleaned.core.cancel(CancellationRequest(error: PromiseError.timedOut, isOutOfTime: true))
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
