@testable import Promises
@testable import PromisesTestSupport

/// Withdrawing thousands of waiters from one promise visits a few waiters each time, however many there are.
struct WithdrawalCostTests {
    private let loop = EventLoop.current

    private static var count: Int { 2000 }

    /// Expects that `body`, which withdraws `count` waiters, visits fewer than 40 for each.
    private func expectFewVisits(_ loop: EventLoop, _ body: () throws -> Void) rethrows {
        let before = loop.nodesVisited
        try body()
        expect(loop.nodesVisited - before < 40 * Self.count)
    }

    @Test(.inLoop, .ownThread) func tasksThatAreCancelled() throws {
        let (source, resolver) = Promise<Int>.pending()
        let promise = source.map { $0 }
        // At the usual priority they would start after all tests that wait for a thread, while this one spins.
        let tasks = (0..<Self.count).map { _ in Task(priority: .high) { try await promise.value } }
        while waiterCount(of: promise) < Self.count { sched_yield() }
        expectFewVisits(loop) { for task in tasks.dropLast() { task.cancel() } }
        expect(promise.isPending)
        resolver.fulfill(1)
        try loop.run()
    }

    @Test(.inLoop) func hangsWhoseTimeIsUp() throws {
        let (promise, resolver) = Promise<Int>.pending()
        for _ in 0..<Self.count { promise.done { _ in }.orFail() }
        // Otherwise each hang would be logged.
        let hold = loop.hold()
        expectFewVisits(loop) {
            for _ in 0..<Self.count { _ = try? hang(promise, timeout: .zero) }
        }
        hold.cancel()
        resolver.fulfill(1)
        try loop.run()
    }

    @Test(.inLoop, arguments: [false, true]) func handlersAmongManyOnCancels(newestFirst: Bool) throws {
        let (promise, resolver) = Promise<Int>.pending()
        var stops = 0
        var handlers: [Promise<Int>] = []
        promise.done { _ in }.ignoringErrors()
        for _ in 0..<Self.count {
            resolver.onCancel { stops += 1 }
            handlers.append(promise.map { $0 })
            resolver.onCancel { stops += 1 }
        }
        expectFewVisits(loop) {
            for handler in newestFirst ? handlers.reversed() : handlers { handler.cancel() }
        }
        expect(promise.isPending)
        promise.cancel()
        try loop.run()
        expectEqual(stops, 2 * Self.count)
    }

    /// Rows of one cancellation end below one promise, which goes on for another handler or is cancelled with them.
    @Test(.inLoop, arguments: [false, true], [false, true]) func rowsThatMeet(
        newestFirst: Bool, isWanted: Bool
    ) throws {
        let (promise, resolver) = Promise<Int>.pending()
        if isWanted { promise.done { _ in }.ignoringErrors() }
        let rows = (0..<Self.count).map { _ in promise.map { $0 } }
        let all = when(fulfilled: newestFirst ? rows.reversed() : rows)
        expectFewVisits(loop) { all.cancel() }
        expectEqual(promise.isPending, isWanted)
        resolver.fulfill(1)
        try loop.run()
    }

    @Test(.inLoop) func theLastListenerIsFoundToBeTheLast() throws {
        let (promise, resolver) = Promise<Int>.pending()
        var stops = 0
        var handlers: [Promise<Int>] = []
        for _ in 0..<100 {
            resolver.onCancel { stops += 1 }
            handlers.append(promise.map { $0 })
        }
        for (number, handler) in handlers.enumerated().reversed() {
            expect(promise.isPending)
            handler.cancel()
            expectEqual(promise.isPending, (number > 0))
        }
        try loop.run()
        expectEqual(stops, 100)
    }

    @Test(.inLoop) func nestedAdoptionsAreFollowedOnceForAReport() throws {
        let (source, resolver) = Promise<Int>.pending()
        var promises = [source.map { $0 }]
        for number in 0..<Self.count {
            let inner = promises[number]
            promises.append(Promise.value(0).then { _ in inner }.named("\(number)"))
        }
        try loop.turn(.poll)
        try loop.turn(.poll)
        var pending: [Provenance] = []
        expectFewVisits(loop) { pending = EventLoop.pendingPromises }
        expect(pending.count == Self.count && pending.last?.name == "\(Self.count - 1)")
        resolver.fulfill(1)
        expect(promises[Self.count], gives: 1)
        expect(EventLoop.pendingPromises.isEmpty)
    }
}
