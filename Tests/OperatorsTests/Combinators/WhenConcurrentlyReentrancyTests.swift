@testable import PromisesTestSupport

/// Iterators and closures that misuse `when(…concurrently:)`, and its cancellation.
struct WhenConcurrentlyReentrancyTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func anIteratorThatSettlesWhatIsUnderWay() throws {
        var pairs: [(promise: Promise<Int>, resolver: Resolver<Int>)] = []
        let iterator = AnyIterator<Promise<Int>> {
            for (index, pair) in pairs.enumerated() { pair.resolver.fulfill(index) }
            guard pairs.count < 5 else { return nil }
            pairs.append(Promise<Int>.pending())
            return pairs.last!.promise
        }
        let all = when(fulfilled: iterator, concurrently: 2) { $0 }
        expectEqual(pairs.count, 2, "the first is settled, and its turn is to come")
        expect(all, gives: [0, 1, 2, 3, 4])
    }

    @Test(.inLoop) func aClosureThatDrivesTheLoop() throws {
        var depth = 0
        var deepest = 0
        let all = when(fulfilled: 0..<20, concurrently: 3) { number -> Guarantee<Int> in
            depth += 1
            deepest = max(deepest, depth)
            hang(after(.seconds(2)))
            depth -= 1
            return after(.seconds(1)).map { number }
        }
        expect(all, gives: Array(0..<20))
        expectEqual(deepest, 1)
    }

    @Test(.inLoop) func anIteratorThatCancelsTheResult() throws {
        let tally = Tally()
        var result: Promise<[Int]>?
        var asked = 0
        let all = { () -> Promise<[Int]> in
            let token = tally.token()
            let iterator = AnyIterator<Promise<Int>> {
                token.use()
                asked += 1
                result?.cancel()
                return after(.seconds(asked)).map { 1 }.asPromise()
            }
            return when(fulfilled: iterator, concurrently: 2) { $0 }
        }()
        result = all
        expect(all, failsWith: PromiseError.cancelled)
        expectEqual(asked, 3)
        expectEqual(loop.nextDeadline, nil, "what it returned then is cancelled with the rest")
        expectEqual(tally.alive, 0)
    }

    @Test(.inLoop) func cancellingCancelsWhatIsUnderWay() throws {
        let tally = Tally()
        var stops: [Int] = []
        var shared: Promise<Int>?
        let all = { () -> Promise<[Int]> in
            let token = tally.token()
            return when(fulfilled: 0..<100, concurrently: 4) { number -> Promise<Int> in
                token.use()
                if number < 2 { return .value(number) }
                let promise = Promise<Int> { resolver in
                    resolver.onCancel { stops.append(number) }
                    loop.schedule(after: .seconds(60)) { resolver.fulfill(1) }.unref()
                }
                if number == 3 {
                    shared = promise
                    promise.ignoringErrors()
                }
                return promise
            }
        }()
        hang(after(.seconds(1)))
        expectEqual(tally.alive, 1)
        all.cancel()
        expectEqual(tally.alive, 0, "iterator and closure are released at once")
        try loop.run()
        expect(all.error as? PromiseError == .cancelled)
        expect(stops == [2, 4, 5] && shared?.isPending == true)
    }

    @Test(.inLoop) func whatIsReleasedWhenItIsCancelledMayDriveTheLoop() throws {
        let pairs = (0..<3).map { _ in Promise<Int>.pending() }
        let all = when(fulfilled: 0..<10, concurrently: 3) { number -> Promise<Int> in
            let words = LastWords { hang(after(.seconds(1))) }
            return pairs[number].promise.map { value in withExtendedLifetime(words) { value } }
        }
        loop.schedule(after: .milliseconds(1)) { for pair in pairs { pair.resolver.fulfill(1) } }
        all.cancel()
        try loop.run()
        expect(all.error as? PromiseError == .cancelled)
    }

    @Test(.inLoop) func aRejectionReleasesTheClosure() throws {
        let tally = Tally()
        let all = { () -> Promise<[Int]> in
            let token = tally.token()
            return when(fulfilled: 0..<10, concurrently: 2) { number -> Promise<Int> in
                token.use()
                return number == 0 ? after(.seconds(60)).map { 0 }.asPromise() : Promise(error: Flaw(number))
            }
        }()
        expect(all, failsWith: Flaw(1))
        expectEqual(tally.alive, 0)
        all.cancel()
        expect(loop.nextDeadline != nil, "a result that has settled cancels nothing")
        try loop.run()
    }

    @Test(.inLoop) func whatIsGivenTooLateGoesOnForAHandlerThatReturnedItBefore() throws {
        let shared = after(.seconds(1)).map { 5 }.asPromise()
        let first = after(.zero).then { shared }
        hang(after(.milliseconds(1)))
        var result: Promise<[Int]>?
        result = when(fulfilled: 0..<3, concurrently: 1) { number -> Promise<Int> in
            if number == 0 { return .value(0) }
            result?.cancel()
            return shared
        }
        hang(after(.milliseconds(1)))
        expect(result?.isCancelled == true && shared.isPending)
        expect(first, gives: 5)
    }
}
