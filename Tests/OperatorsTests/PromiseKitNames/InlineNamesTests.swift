@testable import PromisesTestSupport

/// `on: nil` with functions that are not `@Sendable`.
struct InlineNamesTests {
    /// PromiseKit's own recipe, with `Duration` for its type of delays.
    private func attempt<T>(
        maximumRetryCount: Int = 3, delayBeforeRetry: Duration = .seconds(2), _ body: @escaping () -> Promise<T>
    ) -> Promise<T> {
        var attempts = 0
        func attempt() -> Promise<T> {
            attempts += 1
            return body().recover { error -> Promise<T> in
                guard attempts < maximumRetryCount else { throw error }
                return after(delayBeforeRetry).then(on: nil, attempt)
            }
        }
        return attempt()
    }

    @Test(.inLoop) func theRecipeForRetriesCompilesAndWaitsBetweenAttempts() throws {
        let loop = EventLoop.current
        var times: [Int64] = []
        let tried = attempt { () -> Promise<Item> in
            times.append(loop.now.nanoseconds / 1_000_000_000)
            return times.count < 3 ? Promise(error: Flaw(times.count)) : .value(Item())
        }
        expectEqual(try hang(tried).sum, 0)
        expectEqual(times, [0, 2, 4])
        let failing = attempt(maximumRetryCount: 2) { () -> Promise<Int> in
            times.append(0)
            return Promise(error: Flaw(times.count))
        }
        #expect(throws: Flaw(5)) { try hang(failing) }
    }

    /// Belongs to one thread.
    private final class Item {
        var sum = 0

        func add(_ number: Int) { sum += number }
        func sum(with number: Int) -> Int { sum + number }
        func later(_ number: Int) -> Promise<Int> { .value(sum + number) }
        func note(_ error: any Error) { sum = -1 }
        func repair(_ error: any Error) -> Promise<Int> { .value(sum) }
    }

    @Test(.inLoop) func methodsOfAnObjectRunAsHandlersOfThisThread() throws {
        let item = Item()
        let chain = Promise.value(1).done(on: nil, item.add)
        expectEqual(item.sum, 0, "never inside the call that attaches it")
        try hang(chain)
        expectEqual(try hang(Promise.value(2).map(on: nil, item.sum(with:))), 3)
        expectEqual(try hang(Promise.value(3).then(on: nil, item.later)), 4)
        expectEqual(try hang(Promise<Int>(error: Flaw()).recover(on: nil, item.repair)), 1)
        #expect(throws: PromiseError.cancelled) {
            try hang(Promise<Int>(error: PromiseError.cancelled).recover(on: nil, item.repair))
        }
        Promise<Int>(error: Flaw()).catch(on: nil, item.note)
        try EventLoop.current.run()
        expectEqual(item.sum, -1)
    }

    @Test(.inLoop) func aClosureStillRunsInline() {
        let ran = LockedValue(0)
        Promise.value(1).done(on: nil) { number in ran.withLock { $0 += number } }.cauterize()
        expectEqual(ran.withLock { $0 }, 1)
    }
}
