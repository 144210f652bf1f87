@testable import PromisesTestSupport

/// The end of a cancellation: of clean-ups, and of operations that `onCancelThen` stops.
struct CancelAndWaitTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func cleanUpsAreWaitedFor() {
        var lines: [String] = []
        let work = endless().ensureThen {
            after(.seconds(5)).map { lines.append("clean-up") }
        }.map { $0 }
        hang(work.cancelAndWait().map { lines.append("end") })
        expectEqual(lines, ["clean-up", "end"])
        expect(loop.now >= LoopInstant(nanoseconds: 0).advanced(by: .seconds(5)))
        expect(work.isCancelled)
    }

    @Test(.inLoop) func aGuaranteeEndsWithoutAValue() {
        let timer = after(.seconds(1))
        hang(timer.cancelAndWait())
        expect(timer.asPromise().isCancelled)
    }

    /// The promise continues for others, as does the one that a handler has returned; the caller that cancelled no
    /// longer waits.
    @Test(.inLoop) func aPromiseThatGoesOnForOthers() throws {
        let (shared, resolver) = Promise<Int>.pending()
        let other = shared.map { $0 }
        let own = Promise.value(()).then { shared }
        try loop.run(until: { loop.metrics.waitingHandlers > 1 })
        hang(own.cancelAndWait())
        resolver.fulfill(1)
        expect(other, gives: 1)
    }

    /// It cancels nothing then, and does not handle the error either.
    @Test(.inLoop) func aPromiseThatHasBeenRejected() {
        let lines = logged { hang(Promise<Int>(error: Flaw(1)).cancelAndWait()) }
        expect(lines.count == 1 && lines[0].hasPrefix("unhandled rejection: Flaw(number: 1)"), "\(lines)")
    }

    // MARK: onCancelThen

    private final class Job {
        var lines: [String] = []
        var stops = 0

        func start(for time: Duration = .seconds(2)) -> Promise<Int> {
            let (promise, resolver) = Promise<Int>.pending()
            resolver.onCancelThen { [self] in
                stops += 1
                return after(time).map { [self] in
                    lines.append("stopped")
                    withExtendedLifetime(resolver) {}
                }
            }
            return promise
        }
    }

    @Test(.inLoop) func theWorkEndsBeforeWhatIsBehindIt() {
        let job = Job()
        let work = job.start().ensure { job.lines.append("ensure") }.tap { _ in job.lines.append("tap") }
        let end = work.cancelAndWait().map { job.lines.append("end") }
        expect(work.isPending)
        // A second cancellation changes nothing.
        work.cancel()
        hang(end)
        expectEqual(job.lines, ["stopped", "ensure", "tap", "end"])
        expectEqual(job.stops, 1)
    }

    @Test(.inLoop) func severalEndTogether() {
        var lines: [String] = []
        let (promise, resolver) = Promise<Int>.pending()
        for seconds in [3, 1, 2] {
            resolver.onCancelThen { after(.seconds(seconds)).map { lines.append("\(seconds)") } }
        }
        resolver.onCancel { lines.append("plain") }
        hang(promise.cancelAndWait().map { lines.append("end") })
        // A clean-up may wait for the effect of the plain body.
        expectEqual(lines, ["plain", "1", "2", "3", "end"])
        resolver.fulfill(1)
        expect(promise.isCancelled)
    }

    @Test(.inLoop, arguments: 0..<4) func withoutACancellationItIsNotCalled(form: Int) throws {
        let tally = Tally()
        try inLoop { loop throws in
            let token = tally.token()
            var calls = 0
            var (promise, resolver): (Promise<Int>?, Resolver<Int>?) = Promise<Int>.pending()
            resolver!.onCancelThen {
                token.use()
                calls += 1
                return .value
            }
            resolver!.onCancel { token.with(calls += 1) }
            let end = promise!.map { $0 }
            switch form {
            case 0: resolver!.fulfill(1)
            case 1: resolver!.reject(Flaw(1))
            case 2: resolver!.reject(PromiseError.cancelled)
            default: resolver = nil
            }
            promise = nil
            _ = logged { end.ignoringErrors() }
            try loop.run()
            expectEqual(calls, 0)
        }
        expectEqual(tally.alive, 0)
    }

    /// From a combinator, through a chain, and by another thread.
    @Test(.inRealTime, arguments: 0..<5) func cancellationsFromElsewhere(form: Int) throws {
        let loop = EventLoop.current
        let job = Job()
        let work = job.start(for: .milliseconds(1))
        let hold = loop.hold()
        let end: Promise<Void>
        switch form {
        case 0: end = when(fulfilled: [work, endless()]).asVoid()
        case 1: end = race(work, endless()).asVoid()
        case 2: end = Promise.value(()).then { work }.asVoid()
        case 3: end = work.map { $0 }.ensureThen { after(.milliseconds(1)) }.asVoid()
        default: end = work.asVoid()
        }
        try loop.turn(.poll)
        if form == 4 { TestThread.run { work.cancel() } } else { end.cancel() }
        #expect(throws: PromiseError.cancelled) { try hang(end) }
        expectEqual(job.lines, ["stopped"])
        hold.cancel()
    }

    @Test(.inLoop) func theEndOfTheLoopIsTheEndOfTheWait() {
        let tally = Tally()
        let lines = loggedInLoop { loop in
            let token = tally.token()
            let (promise, resolver) = Promise<Int>.pending()
            resolver.onCancelThen {
                token.use()
                return Promise<Void>.pending().promise.recover { _ in Guarantee.value }
            }
            promise.map { _ in token.use() }.ignoringErrors()
            promise.cancel()
        }
        expect(lines.count <= 2)
        expectEqual(tally.alive, 0)
    }

    /// The clean-up may wait for what `onCancel` has stopped.
    @Test(.inLoop) func onCancelIsCalledBeforeTheCleanUpEnds() throws {
        var lines: [String] = []
        let (promise, resolver) = Promise<Int>.pending()
        let (ended, end) = Guarantee<Void>.pending()
        resolver.onCancelThen {
            lines.append("clean-up")
            return ended
        }
        resolver.onCancel {
            lines.append("stop")
            end(())
        }
        hang(promise.cancelAndWait())
        expect(lines == ["clean-up", "stop"] && promise.isCancelled)
        withExtendedLifetime(resolver) {}
    }

    @Test(.inLoop) func anErrorInPlaceOfTheCancellationIsReported() throws {
        let lines = logged {
            let promise = endless().recover(policy: .allErrors) { _ throws -> Promise<Int> in throw Flaw(9) }
            hang(promise.cancelAndWait())
        }
        expect(lines.count == 1 && lines[0].contains("Flaw(number: 9)"), "\(lines)")
    }
}
