import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// What handlers captured that a loop of `withLoop` leaves behind, when another thread settles their promise.
@Suite(.serialized) struct LeftBehindTests {
    @Test func itIsReleasedOnTheThreadOfTheLoop() throws {
        try EventLoop.withLoop { outer throws in
            let tally = Tally(keepsEnders: true)
            let (promise, resolver) = Promise<Int>.pending()
            let derived = EventLoop.withLoop { _ in
                let token = tally.token()
                return promise.map { number in
                    token.use()
                    return number
                }
            }
            TestThread.run { resolver.fulfill(1) }
            #expect(derived.error as? PromiseError == .loopEnded, "a waiter for it is rejected at once")
            #expect(tally.alive == 1, "not on the thread that settles")
            try outer.turn(.poll)
            #expect(tally.enders.count == 1)
            #expect(tally.enders.allSatisfy { pthread_equal($0, pthread_self()) != 0 })
        }
    }

    @Test func itIsReleasedWhenTheLoopAroundEnds() {
        let tally = Tally(keepsEnders: true)
        EventLoop.withLoop { _ in
            let (promise, resolver) = Promise<Int>.pending()
            EventLoop.withLoop { _ in
                EventLoop.withLoop { _ in
                    let token = tally.token()
                    promise.done { _ in token.use() }.ignoringErrors()
                }
            }
            TestThread.run { resolver.fulfill(1) }
            #expect(tally.alive == 1)
        }
        #expect(tally.enders.count == 1)
        #expect(tally.enders.allSatisfy { pthread_equal($0, pthread_self()) != 0 })
    }

    @Test func onAThreadWithoutAnotherLoopOneIsMade() {
        let tally = Tally(keepsEnders: true)
        let (promise, resolver) = Promise<Int>.pending()
        TestThread.run {
            EventLoop.withLoop { _ in
                let token = tally.token()
                promise.done { _ in token.use() }.ignoringErrors()
            }
            TestThread.run { resolver.fulfill(1) }
            #expect(tally.alive == 1)
        }
        #expect(tally.enders.count == 1)
    }
}
