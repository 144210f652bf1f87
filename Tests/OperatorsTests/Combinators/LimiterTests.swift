@testable import PromisesTestSupport

struct LimiterTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func atMostAsManyAtATimeInOrder() throws {
        let limiter = Limiter(3)
        var (running, most) = (0, 0)
        var order: [Int] = []
        let results = (0..<10).map { index in
            limiter.run {
                running += 1
                most = max(most, running)
                order.append(index)
                return after(.seconds(1)).map { () -> Int in
                    running -= 1
                    return index
                }
            }
        }
        expect(limiter.waiting == 7 && limiter.active == 3)
        expect(when(fulfilled: results), gives: Array(0..<10))
        try loop.run()
        expect(most == 3 && order == Array(0..<10))
        expect(limiter.active == 0 && limiter.waiting == 0)
    }

    @Test(.inLoop) func aWorkThatIsCancelledHoldsItsPermitUntilItHasEnded() throws {
        let limiter = Limiter(1)
        var lines: [String] = []
        let first = limiter.run {
            endless().ensureThen { after(.seconds(5)).map { lines.append("clean-up") } }
        }
        let second = limiter.run {
            lines.append("second")
            return Promise.value(2)
        }
        try loop.turn(.poll)
        first.cancel()
        try loop.turn(.poll)
        expect(limiter.active == 1 && limiter.waiting == 1)
        expect(second, gives: 2)
        expectEqual(lines, ["clean-up", "second"])
    }

    /// An operation that another handler keeps alive continues, and keeps its permit.
    @Test(.inLoop) func aWorkThatGoesOnKeepsItsPermit() throws {
        let limiter = Limiter(1)
        let (shared, resolver) = Promise<Int>.pending()
        shared.pipe { _ in }
        let first = limiter.run { shared }
        let second = limiter.run { Promise.value(2) }
        try loop.turn(.poll)
        first.cancel()
        try loop.turn(.poll)
        expect(limiter.active == 1 && second.isPending)
        resolver.fulfill(1)
        expect(second, gives: 2)
    }

    @Test(.inLoop) func aWaiterThatIsCancelledLeavesTheOrder() throws {
        let limiter = Limiter(1)
        var order: [Int] = []
        let (gate, open) = Promise<Void>.pending()
        let works = (0..<5).map { index in
            limiter.run {
                order.append(index)
                return gate
            }
        }
        works[2].cancel()
        works[4].cancel()
        expectEqual(limiter.waiting, 2)
        open.fulfill()
        try loop.run()
        expect(works[2].isCancelled && works[4].isCancelled)
        expectEqual(order, [0, 1, 3])
        expectEqual(limiter.active, 0)
    }

    @Test(.inLoop) func aLimitOfNoneIsRefused() throws {
        let error = Limiter(0).run { Promise.value(1) }.error as? PromiseError
        guard case .badInput? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    /// Nothing on the loop refers to it behind its last waiter.
    @Test(.inLoop) func theEndOfALoopThatHasOutlivedIt() {
        let limiter = Limiter(1)
        let work = limiter.run { endless() }
        limiter.run { endless() }.cancel()
        work.cancel()
    }

    @Test(.inLoop) func theEndOfTheLoop() {
        let tally = Tally()
        var limiter: Limiter?
        var waiting: Promise<Int>?
        _ = loggedInLoop { _ in
            limiter = Limiter(1)
            let token = tally.token()
            limiter!.run { Promise<Void> { _ in } }.ignoringErrors()
            waiting = limiter!.run { () -> Promise<Int> in
                token.use()
                return .value(1)
            }
        }
        expectEqual(waiting?.isPending, false)
        expect(limiter?.waiting == 0 && tally.alive == 0)
    }

    /// Operations of all kinds, cancelled at any moment: no permit is lost or granted twice, and each clean-up runs
    /// once.
    @Test(.inLoop, arguments: 0..<20) func thousandsOfCancellations(seed: Int) throws {
        var dice = SplitMix64(UInt64(seed))
        let limiter = Limiter(1 + dice.below(5))
        var (running, most) = (0, 0)
        var works: [Promise<Int>] = []
        for index in 0..<scaled(1_500) {
            let kind = dice.below(5)
            let time = Duration.milliseconds(dice.below(20))
            let work = limiter.run { () throws -> Promise<Int> in
                if kind == 0 { throw Flaw(index) }
                running += 1
                most = max(most, running)
                let body: Promise<Int> =
                    switch kind {
                    case 1: .value(index)
                    case 2: endless()
                    case 3: after(time).map { index }.asPromise()
                    default: after(time).then { endless() }
                    }
                return body.ensureThen { after(kind == 3 ? .zero : time) }.ensure { running -= 1 }
            }
            work.ignoringErrors()
            works.append(work)
            if kind == 2 || kind == 4 || dice.once(in: 2) {
                loop.schedule(after: .milliseconds(dice.below(200))) { work.cancel() }
            }
            if index % 7 == 0 { try loop.turn(.poll) }
        }
        try loop.run()
        expect(works.allSatisfy { !$0.isPending })
        expect(limiter.active == 0 && limiter.waiting == 0)
        expect(running == 0 && most <= limiter.limit)
    }
}
