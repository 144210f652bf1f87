@testable import PromisesTestSupport

/// A loop that ends while its handlers wait for promises of other threads leaves nothing behind.
@Suite(.serialized) struct LeftBehindTests {
    /// The ends of a loop.
    enum End: CaseIterable {
        case scope, thread, stop

        /// Runs `body` on a loop, which has ended when this returns.
        func run(_ body: @escaping @Sendable () -> Void) throws {
            switch self {
            case .scope: EventLoop.withLoop { _ in body() }
            case .thread: TestThread.run(body)
            case .stop:
                let worker = try EventLoop.spawn()
                worker.submit(body)
                worker.stop()
                worker.join()
            }
        }
    }

    /// Handlers of other loops that wait for the promises of these handlers learn of it.
    @Test(.inLoop, arguments: End.allCases, [false, true])
    func whatHandlersCapturedIsReleasedOnTheirThread(end: End, isCancelled: Bool) throws {
        let tally = Tally(keepsEnders: true)
        let (promise, resolver) = Promise<Int>.pending()
        let thread = Shared<pthread_t?>(nil)
        let left = Shared<[Promise<Int>]>([])
        try end.run {
            thread.value = pthread_self()
            promise.catch { _ in }.finally(tally.bound())
            resolver.onCancel(tally.bound())
            let get = { [token = tally.token()] in promise.get { _ in token.use() } }
            left.value = [
                get(), race(promise, get()), race(fulfilled: [promise, promise]),
                when(fulfilled: [promise, get()]).map { $0[0] }, when(resolved: [promise]).map(\.count).asPromise(),
                when(fulfilled: [promise, promise], concurrently: 2) { $0 }.map { $0[0] },
                forEach([promise, promise]) { $0 }.map { 1 },
            ]
        }
        expect(tally.alive == 0 && tally.enders.allSatisfy { pthread_equal($0, thread.value!) != 0 })
        for promise in left.value {
            expect(promise.error as? PromiseError == .loopEnded)
            expect(promise.map { $0 }, failsWith: PromiseError.loopEnded)
        }
        expect(promise.isPending)
        TestThread.run { if isCancelled { promise.cancel() } else { resolver.fulfill(1) } }
        expect(promise.isResolved)
    }

    /// The loser has no other handler, and the other source is a timer, which ends with the loop.
    @Test func aRaceThatItsLoopEndsCancelsNoLoser() {
        let (promise, resolver) = Promise<Int>.pending()
        let lines = logged {
            EventLoop.withLoop { _ in race(after(.seconds(1)).map { 1 }.asPromise(), promise).ignoringErrors() }
        }
        expect(promise.isPending && lines.count == 1)
        resolver.fulfill(1)
    }

    /// A `deinit` at the end of the loop attaches once more.
    @Test func aHandlerThatIsAttachedDuringTheEndIsReleasedToo() {
        let tally = Tally()
        weak var ended: EventLoop?
        let (promise, resolver) = Promise<Int>.pending()
        EventLoop.withLoop { loop in
            ended = loop
            let words = LastWords {
                let token = tally.token()
                promise.done { _ in token.use() }.ignoringErrors()
            }
            promise.done { _ in words.use() }.ignoringErrors()
        }
        expect(tally.alive == 0 && tally.peak == 1)
        resolver.fulfill(1)
        // The list of the promise had withdrawn waiters of the loop.
        expect(ended == nil)
    }

    /// The promises of a combinator are cancelled while the loop releases the waiters of the others.
    @Test func aCombinatorIsCancelledDuringTheEnd() {
        let tally = Tally()
        let pairs = (0..<10).map { _ in Promise<Int>.pending() }
        EventLoop.withLoop { _ in
            let token = tally.token()
            let all = when(
                fulfilled: pairs.map { pair in
                    pair.promise.get { _ in token.use() }
                })
            let words = LastWords { all.cancel() }
            pairs[5].promise.done { _ in words.use() }.ignoringErrors()
        }
        expectEqual(tally.alive, 0)
        for pair in pairs { pair.resolver.fulfill(1) }
    }
}
