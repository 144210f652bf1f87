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
    @Test(.network) func aReadIsWithdrawn() throws {
        let (connection, peer) = try net.pair()
        let read = connection.receive()
        let limit = Promise.value([UInt8]())
        expectEqual(race(read, limit).settledValue, [])
        try net.loop.turn(.poll)
        expect(read.error as? PromiseError == .cancelled && !net.loop.isAlive)
        try peer.send("hello")
        expectEqual(try hang(connection.receive(), timeout: patience), Array("hello".utf8))
        connection.abort()
    }

    @Test(.network) func aConnectClosesItsDescriptor() throws {
        let listener = try net.listen()
        let attempts = (0..<3).map { _ in connect(to: listener.localAddress) }
        let winner = try hang(race(attempts), timeout: patience)
        let rejected = attempts.count { $0.isRejected }
        expectEqual(rejected, 2)
        winner.abort()
        listener.close()
        net.settle(.zero)
        expect(!net.loop.isAlive)
    }
}
