@testable import Promises
@testable import PromisesTestSupport

/// The losers of a race are cancelled, unless they have another waiter.
struct RaceLoserTests {
    private let loop = EventLoop.current

    @Test(.inLoop, arguments: [true, false]) func timersAreGoneFromTheLoop(isFulfilled: Bool) throws {
        let (promise, resolver) = Promise<Void>.pending()
        let winner = race(after(.seconds(60)).asPromise(), promise, after(.seconds(30)).map {}.asPromise())
        if isFulfilled { resolver.fulfill() } else { resolver.reject(Flaw(1)) }
        expect(winner.flaw == (isFulfilled ? nil : Flaw(1)) && winner.isResolved)
        expect(loop.nextDeadline == nil && !loop.isAlive)
    }

    @Test(.inLoop, arguments: 0..<3) func alsoOfARaceThatIsWonAtOnce(place: Int) throws {
        var sources = [after(.seconds(1)).map { 1 }.asPromise(), after(.seconds(2)).map { 2 }.asPromise()]
        sources.insert(.value(0), at: place)
        expectEqual(race(sources).settledValue, 0)
        try loop.turn(.poll)
        expectEqual(loop.nextDeadline, nil)
        let rejected = sources.count { $0.isRejected }
        expectEqual(rejected, 2)
    }

    @Test(.inLoop) func onCancelIsCalledAsAJob() throws {
        var stops: [Int] = []
        let pairs = (0..<3).map { _ in Promise<Int>.pending() }
        for (index, pair) in pairs.enumerated() { pair.resolver.onCancel { stops.append(index) } }
        let winner = race(pairs.map(\.promise))
        pairs[1].resolver.fulfill(1)
        expect(winner.settledValue == 1 && stops == [])
        expect(pairs[0].promise.error as? PromiseError == .cancelled)
        try loop.run()
        expectEqual(stops, [0, 2])
    }

    @Test(.inLoop) func oneThatAnotherChainWaitsForGoesOn() throws {
        let shared = after(.seconds(2)).map { 2 }.asPromise()
        let other = shared.map { $0 * 10 }
        expect(race(shared, after(.seconds(1)).map { 1 }.asPromise()), gives: 1)
        expect(shared.isPending && loop.nextDeadline != nil)
        expect(other, gives: 20)
    }

    @Test(.inLoop) func oneThatAHandlerHasReturnedGoesOn() throws {
        let shared = after(.seconds(2)).map { 2 }.asPromise()
        let other = after(.zero).then { shared }
        hang(after(.milliseconds(1)))
        // `shared` is merged with `other` now.
        expect(race(shared, after(.seconds(1)).map { 1 }.asPromise()), gives: 1)
        expect(other, gives: 2)
    }

    @Test(.inLoop) func itsErrorIsNotReported() throws {
        let lines = try loggedInLoop { loop throws in
            let (loser, resolver) = Promise<Int>.pending()
            var slow: Promise<Int>? = loser.then { _ in after(.seconds(1)).map { throw Flaw() } }
            let other = slow?.tap { _ in }
            expectEqual(race(slow!, .value(1)).settledValue, 1)
            slow = nil
            resolver.fulfill(1)
            other?.ignoringErrors()
            try loop.run()
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop) func thePromiseThatWinsMayAlsoLose() throws {
        for order in 0..<2 {
            let (promise, resolver) = Promise<Int>.pending()
            let (other, otherResolver) = Promise<Int>.pending()
            let sources = order == 0 ? [promise, promise, other, promise] : [other, promise, other, promise]
            let winner = race(sources)
            resolver.fulfill(1)
            expect(winner.settledValue == 1 && other.isRejected)
            withExtendedLifetime(otherResolver) {}
        }
    }

    @Test(.inLoop) func theFirstOfManyCancelsAllOthers() throws {
        let pairs = (0..<scaled(100_000)).map { _ in Promise<Int>.pending() }
        let winner = race(pairs.map(\.promise))
        pairs[77].resolver.fulfill(77)
        expectEqual(winner.settledValue, 77)
        let rejected = pairs.count { $0.promise.isRejected }
        expectEqual(rejected, pairs.count - 1)
    }

    @Test(.inLoop) func whatIsReleasedMayStartAnotherRace() throws {
        let (first, resolver) = Promise<Int>.pending()
        let (last, lastResolver) = Promise<Int>.pending()
        let slow = {
            let words = LastWords { race(last, .value(3)).ignoringErrors() }
            return after(.seconds(60)).map { withExtendedLifetime(words) { 1 } }.asPromise()
        }()
        let winner = race(first, slow, last)
        resolver.fulfill(1)
        expect(winner.settledValue == 1 && slow.isRejected)
        try loop.run()
        expect(last.isRejected)
        withExtendedLifetime(lastResolver) {}
    }

    @Test(.inLoop) func noneIsCancelledWhileTheLoopEnds() {
        let lines = logged {
            let (promise, resolver) = Promise<Int>.pending()
            inLoop { _ in race(after(.seconds(1)).map { 1 }.asPromise(), promise).ignoringErrors() }
            expect(promise.isPending)
            resolver.fulfill(1)
        }
        expectEqual(lines.count, 1, "that handlers were left behind")
    }

    // MARK: Settled on creation: nothing is done to the sources inside the call.

    @Test(.inLoop) func aHandlerOnTheNextLineKeepsALoserGoing() throws {
        let slow = after(.seconds(1)).map { 2 }.asPromise()
        let winner = race(slow, .value(1))
        var seen: Int?
        slow.done { seen = $0 }.orFail()
        expectEqual(winner.settledValue, 1)
        try loop.run()
        expectEqual(seen, 2)
    }

    @Test(.inLoop) func aWhenThatHasFailedAndATimeoutOfZero() throws {
        let slow = after(.seconds(1)).map { 2 }.asPromise()
        let all = when(fulfilled: [slow, Promise(error: Flaw(1))])
        let limited = slow.timeout(.zero)
        var seen: Int?
        slow.done { seen = $0 }.orFail()
        try loop.run()
        expect(all.flaw == Flaw(1) && limited.error as? PromiseError == .timedOut && seen == 2)
        all.ignoringErrors()
    }
}

/// Losers that wait for descriptors.
struct RaceLoserIOTests {
    @Test func aReadIsWithdrawn() throws {
        try withNetwork { network in
            let (connection, peer) = try network.pair()
            let read = connection.receive()
            let limit = Promise.value([UInt8]())
            expectEqual(race(read, limit).settledValue, [])
            try network.loop.turn(.poll)
            expect(read.error as? PromiseError == .cancelled && !network.loop.isAlive)
            try peer.send("hello")
            expectEqual(try hang(connection.receive(), timeout: patience), Array("hello".utf8))
            connection.abort()
        }
    }

    @Test func aConnectClosesItsDescriptor() throws {
        try withNetwork { network in
            let listener = try network.listen()
            let attempts = (0..<3).map { _ in connect(to: listener.localAddress) }
            let winner = try hang(race(attempts), timeout: patience)
            let rejected = attempts.count { $0.isRejected }
            expectEqual(rejected, 2)
            winner.abort()
            listener.close()
            network.settle(.zero)
            expect(!network.loop.isAlive)
        }
    }
}

extension Promise {
}
