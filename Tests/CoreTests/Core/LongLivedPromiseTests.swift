@testable import Promises
@testable import PromisesTestSupport

/// A promise that lives as long as the program and never settles: users of it that have ended leave nothing on it.
struct LongLivedPromiseTests {
    private let loop = EventLoop.current

    /// More than the number of withdrawn waiters at which a list is swept.
    private static let uses = 200

    @Test(.inLoop, arguments: ["rejected later", "rejected before", "concurrently"]) func whenWhoseOtherInputRejects(
        how: String
    )
        throws
    {
        let tally = Tally()
        let (forever, resolver) = Promise<Int>.pending()
        for _ in 0..<Self.uses {
            let (other, failing) = Promise<Int>.pending()
            if how == "rejected before" { failing.reject(Flaw()) }
            let token = tally.token()
            let mapped = other.get { _ in token.use() }
            let all =
                how == "concurrently"
                ? when(fulfilled: [forever, mapped], concurrently: 2) { $0 }
                : when(fulfilled: [mapped, forever])
            all.ignoringErrors()
            failing.reject(Flaw())
            try loop.turn(.poll)
            expectEqual(all.flaw, Flaw())
        }
        expect(waiterCount(of: forever) < 40 && loop.waitingHandlers == 0 && tally.alive == 0)
        resolver.fulfill(1)
    }

    @Test(.inLoop, arguments: ["cancelled", "lost a race"]) func theEndOfALoopThatLives(how: String) throws {
        let worker = try EventLoop.spawn()
        let group = try LoopGroup(loops: 1)
        for _ in 0..<Self.uses {
            if how == "cancelled" {
                worker.ended.cancel()
                group.ended.cancel()
            } else {
                _ = race(worker.ended, Guarantee.value(()))
                _ = race(group.ended, Guarantee.value(()))
            }
            try loop.turn(.poll)
        }
        expect(!loop.canWakeItself)
        expect(worker.ended.isPending)
        expect(worker.waitersForEnd == 1 && group[0].waitersForEnd == 0)
        group.stop()
        hang(group.ended)
        worker.stop()
        hang(worker.ended)
    }

    @Test(.inLoop) func hangsThatRunOutOfTime() {
        let (forever, resolver) = Promise<Int>.pending()
        _ = logged {
            for _ in 0..<Self.uses {
                #expect(throws: PromiseError.timedOut) { try hang(forever, timeout: .milliseconds(1)) }
            }
        }
        expect(waiterCount(of: forever) < 40)
        resolver.fulfill(1)
    }

    @Test(.inLoop) func whatIsCancelled() throws {
        let tally = Tally()
        let (forever, resolver) = Promise<Int>.pending()
        for _ in 0..<Self.uses {
            let token = tally.token()
            forever.get { _ in token.use() }.cancel()
            forever.map(on: nil) { token.with($0) }.cancel()
            forever.then { _ in after(.seconds(1)).map { token.use() } }.cancel()
            let caught = forever.asVoid()
            caught.catch(policy: .allErrors) { _ in }.finally { token.use() }
            caught.cancel()
            Promise.value.then { _ in forever }.cancel()
            when(fulfilled: forever, after(.seconds(1))).cancel()
            try loop.run(until: { !loop.isReady })
        }
        expect(waiterCount(of: forever) < 200 && loop.waitingHandlers == 0 && tally.alive == 0)
        resolver.fulfill(1)
    }
}
