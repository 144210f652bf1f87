@testable import PromisesTestSupport

/// Combinators whose sources belong to other threads. Under ThreadSanitizer.
struct CombinatorThreadTests {
    @Test func oneSettlesWhileOthersLose() throws {
        for round in 0..<scaled(1000) {
            let pairs = (0..<6).map { _ in Promise<Int>.pending() }
            let stops = Shared(0)
            for pair in pairs { pair.resolver.onCancel { stops.change { $0 += 1 } } }
            let winner = round % 2 == 0 ? race(pairs.map(\.promise)) : race(fulfilled: pairs.map(\.promise))
            let threads = (0..<3).map { part in
                TestThread {
                    for index in stride(from: part, to: 6, by: 3) { pairs[index].resolver.fulfill(index) }
                }
            }
            let index = try hang(winner, timeout: patience)
            for thread in threads { thread.join() }
            try EventLoop.current.run()
            expectEqual(pairs[index].promise.settledValue, index)
            let cancelled = pairs.count { $0.promise.isRejected }
            expectEqual(stops.value, cancelled, "each is told that was cancelled, and none that was faster")
        }
    }

    @Test func losersOfAnotherThreadsLoop() throws {
        for _ in 0..<scaled(200) {
            let box = Shared<[Promise<Int>]>([])
            let (isThere, isWon) = (Gate(), Gate())
            let owner = TestThread {
                let naps = (0..<3).map { number in after(.seconds(60)).map { number }.asPromise() }
                box.change { $0 = naps }
                isThere.open()
                isWon.wait()
                // A cancellation elsewhere is a cancellation here, and nothing is left to wait for.
                try? EventLoop.current.run()
                expectEqual(EventLoop.current.nextDeadline, nil)
            }
            isThere.wait()
            let winner = race(box.value + [.value(7)])
            expectEqual(winner.settledValue, 7)
            // It was won on creation, so its losers are cancelled by a job, which may not be this thread's first.
            while EventLoop.current.isReady { try EventLoop.current.turn(.poll) }
            isWon.open()
            owner.join()
            let cancelled = box.value.filter { $0.error as? PromiseError == .cancelled }
            expectEqual(cancelled.count, 3)
        }
    }

    @Test func aLoserThatItsOwnThreadSettlesMeanwhile() throws {
        for _ in 0..<scaled(500) {
            let box = Shared<Promise<Int>?>(nil)
            let (isThere, isOver) = (Gate(), Gate())
            let owner = TestThread {
                let (promise, resolver) = Promise<Int>.pending()
                let mapped = promise.map { $0 + 1 }
                box.change { $0 = mapped }
                isThere.open()
                resolver.fulfill(1)
                while mapped.isPending { try? EventLoop.current.turn(.poll) }
                isOver.wait()
                try? EventLoop.current.turn(.poll)
            }
            isThere.wait()
            EventLoop.withLoop { loop in
                for _ in 0..<20 {
                    let (other, resolver) = Promise<Int>.pending()
                    let winner = race(box.value!, other)
                    resolver.fulfill(0)
                    winner.ignoringErrors()
                    try? loop.turn(.poll)
                }
            }
            isOver.open()
            owner.join()
            expectEqual(box.value?.isResolved, true)
        }
    }

    @Test func sourcesOfAConveyorSettledElsewhere() throws {
        let work = Shared<[(Int, Resolver<Int>)]>([])
        let isOver = Shared(false)
        let workers = (0..<2).map { _ in
            TestThread {
                while !isOver.value {
                    let taken = work.change { $0.popLast() }
                    guard let (number, resolver) = taken else {
                        sched_yield()
                        continue
                    }
                    if number % 10 == 9 { resolver.reject(Flaw(number)) } else { resolver.fulfill(number) }
                }
            }
        }
        let count = scaled(5000)
        let start = { (number: Int) -> Promise<Int> in
            let (promise, resolver) = Promise<Int>.pending()
            work.change { $0.append((number, resolver)) }
            return promise
        }
        let all = when(fulfilled: 0..<count, concurrently: 8) { when(resolved: [start($0)]) }
        let outcomes = try hang(all, timeout: .seconds(60)).joined()
        var sum = 0
        let series = Promise.value((0..<count).filter { $0 % 10 != 9 }).thenReduce(0) { total, number in
            start(number).map { total + $0 }
        }
        sum = try hang(series, timeout: .seconds(60))
        isOver.change { $0 = true }
        for worker in workers { worker.join() }
        let errors = outcomes.count { if case .failure = $0 { true } else { false } }
        expect(outcomes.count == count && errors == count / 10)
        expectEqual(sum, (0..<count).filter { $0 % 10 != 9 }.reduce(0, +))
    }

    @Test func cancelledFromElsewhere() throws {
        for round in 0..<scaled(500) {
            let box = Shared<(Promise<[Int]>, [Resolver<Int>])?>(nil)
            let isThere = Gate()
            let owner = TestThread {
                var resolvers: [Resolver<Int>] = []
                let all = when(fulfilled: 0..<50, concurrently: 4) { number -> Promise<Int> in
                    let (promise, resolver) = Promise<Int>.pending()
                    resolvers.append(resolver)
                    resolver.fulfill(number)
                    return promise
                }
                let pending = (0..<3).map { _ in Promise<Int>.pending() }
                let stuck = round % 2 == 0 ? race(pending.map(\.promise)).map { [$0] } : all
                box.change { $0 = (stuck, pending.map(\.resolver)) }
                isThere.open()
                while stuck.isPending { try? EventLoop.current.turn(.poll) }
            }
            isThere.wait()
            let (promise, resolvers) = box.value!
            let settler = TestThread { for resolver in resolvers { resolver.fulfill(1) } }
            promise.cancel()
            settler.join()
            owner.join()
            expect(promise.isResolved)
        }
    }
}
