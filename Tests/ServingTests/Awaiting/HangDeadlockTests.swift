@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The report of a `hang` that cannot end, and its absence for one that can.
@Suite(.serialized) struct HangDeadlockTests {
    @Test func aHandlerThatHangsOnItsOwnPromiseIsReportedAlthoughTimersAreLeft() throws {
        let lines = try loggedInLoop { loop throws in
            loop.schedule(every: .seconds(60)) {}.unref()
            var own: Promise<Int>?
            var failure: (any Error)?
            own = after(.seconds(1)).asPromise().map { () throws -> Int in
                do { return try hang(own!, timeout: .seconds(3600)) } catch { failure = error }
                return 7
            }
            expect(own!, gives: 7)
            expect(failure as? PromiseError == .timedOut)
        }
        expectEqual(lines.count, 1)
        expectEqual(lines.first?.contains("cannot return before the hang does"), true)
    }

    @Test func alsoWhereItHangsOnWhatFollowsOrOnAllOfAWhen() throws {
        let following = try loggedInLoop { loop throws in
            var last: Promise<Int>?
            let first = after(.seconds(1)).asPromise().map { () -> Int in
                _ = try? hang(last!, timeout: .seconds(3600))
                return 7
            }
            last = first.then { value in after(.seconds(1)).map { value } }.map { $0 + 1 }
            expect(last!, gives: 8)
        }
        expectEqual(following.map { $0.contains("cannot return before the hang does") }, [true])
        let gathered = try loggedInLoop { loop throws in
            var all: Promise<[Int]>?
            let first = after(.seconds(1)).asPromise().map { () -> Int in
                _ = try? hang(all!, timeout: .seconds(3600))
                return 7
            }
            all = when(fulfilled: [first, after(.seconds(5)).map { 1 }.asPromise()])
            expect(all!, gives: [7, 1])
        }
        expectEqual(gathered.count, 1)
    }

    @Test func notWhereItCanEnd() throws {
        let lines = try loggedInLoop { loop throws in
            // The handler waits for another promise.
            let other = after(.seconds(2)).asPromise().then { after(.seconds(1)).map { 3 } }
            let own = after(.seconds(1)).asPromise().map { try hang(other.map { $0 + 1 }) }
            expect(own, gives: 4)
            // A race has another winner.
            var fastest: Promise<Int>?
            let first = after(.seconds(1)).asPromise().map { () throws -> Int in try hang(fastest!) + 1 }
            fastest = race(first, after(.seconds(5)).map { 1 }.asPromise())
            expect(first, gives: 2)
            // A time-out ends it: it cancels the running work that it waits for.
            var limited: Promise<Int>?
            let work = after(.seconds(1)).asPromise().map { () -> Int in
                #expect(throws: PromiseError.timedOut) { try hang(limited!) }
                return 7
            }
            limited = work.map { $0 }.timeout(.seconds(5))
            expect(limited!, failsWith: PromiseError.timedOut)
        }
        expectEqual(lines, [])
    }

    @Test(.inLoop) func aHangGoesOnAfterAStopInSpiteOfAHook() throws {
        let loop = EventLoop.current
        var calls = 0
        var hook: EventLoop.Watch?
        hook = loop.beforeWaiting {
            calls += 1
            if calls == 1000 { hook?.cancel() }
        }
        loop.stop()
        hang(after(.seconds(1)))
        expect(calls < 10)
        hook?.cancel()
    }

    @Test(arguments: [false, true]) func whatAnotherThreadSettlesSoonIsNotReported(inVirtualTime: Bool) throws {
        let lines = try logged {
            try EventLoop.withLoop(clock: inVirtualTime ? VirtualClock() : nil) { _ throws in
                for round in 0..<20 {
                    let (promise, resolver) = Promise<Int>.pending()
                    let thread = TestThread { resolver.fulfill(round) }
                    expectEqual(try hang(promise), round)
                    thread.join()
                }
            }
        }
        expectEqual(lines, [])
    }
}
