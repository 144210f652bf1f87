@testable import PromisesTestSupport

/// A loop that ends while its handlers wait for promises of other threads leaves nothing behind.
@Suite(.serialized) struct LeftBehindTests {
    @Test func whatHandlersCapturedIsReleasedByTheEndOfTheLoopOnItsThread() {
        let tally = Tally(keepsEnders: true)
        let (promise, resolver) = Promise<Int>.pending()
        weak var ended: EventLoop?
        let derived = EventLoop.withLoop { loop in
            ended = loop
            for number in 0..<4 {
                let token = tally.token()
                switch number {
                case 0: promise.done { _ in token.use() }.ignoringErrors()
                case 1: promise.catch { _ in }.finally { token.use() }
                case 2: resolver.onCancel { token.use() }
                default: race(promise.get { _ in token.use() }, Promise { _ in }).ignoringErrors()
                }
            }
            return promise.map { $0 + 1 }
        }
        expect(tally.alive == 0 && ended == nil)
        expect(tally.enders.allSatisfy { pthread_equal($0, pthread_self()) != 0 })
        expect(derived.error as? PromiseError == .loopEnded, "a waiter for it is rejected at once")
        TestThread.run { resolver.fulfill(1) }
    }

    /// A `deinit` at the end of the loop attaches once more.
    @Test func aHandlerThatIsAttachedDuringTheEndIsReleasedToo() {
        let tally = Tally()
        let (promise, resolver) = Promise<Int>.pending()
        EventLoop.withLoop { _ in
            let words = LastWords {
                let token = tally.token()
                promise.done { _ in token.use() }.ignoringErrors()
            }
            promise.done { _ in words.use() }.ignoringErrors()
        }
        expect(tally.alive == 0 && tally.peak == 1)
        resolver.fulfill(1)
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

/// `onCancel` attached by a thread that ends before the promise settles. Under AddressSanitizer.
struct OnCancelThreadTests {
    @Test(arguments: [false, true])
    func itsThreadEndsFirst(isCancelled: Bool) {
        let tally = Tally()
        for _ in 0..<10 {
            let box = Shared<(promise: Promise<Int>, resolver: Resolver<Int>)?>(nil)
            TestThread.run {
                let pair = Promise<Int>.pending()
                let token = tally.token()
                pair.resolver.onCancel { token.use() }
                box.change { $0 = pair }
            }
            if isCancelled { box.value?.promise.cancel() } else { box.value?.resolver.fulfill(1) }
            expectEqual(box.value?.promise.isResolved, true)
        }
        expectEqual(tally.alive, 0)
    }
}
