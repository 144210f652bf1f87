@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// Requests that are cancelled at any moment: no resource is lost, closed twice, or used by two.
struct PoolCancellationTests {
    /// Four thousand requests, more than half of them cancelled: in the queue, while a resource is made or checked
    /// for them, as they get it, in their body, in the clean-up of their body, and too late.
    @Test(.network(.virtual, turns: 1_000_000), arguments: 0..<4) func nothingIsLost(seed: Int) throws {
        var random = SplitMix64(UInt64(seed))
        let workshop = Workshop()
        workshop.making = {
            if random.once(in: 8) { throw Flaw(8) }
            return random.once(in: 3) ? .value : pause(random.below(9))
        }
        let hasChecks = seed % 2 == 1
        let limits = PoolLimits(
            perKey: 1 + random.below(3), total: random.once(in: 2) ? .max : 3,
            waitTimeout: random.once(in: 2) ? nil : .milliseconds(40), makeTimeout: .milliseconds(7),
            checkTimeout: .milliseconds(3), idleTimeout: .milliseconds(5 + random.below(20)),
            maxLifetime: random.once(in: 2) ? nil : .milliseconds(30))
        let check: ((Item) throws -> Promise<Void>)? = { item in
            expect(item.users == 0 && item.closes == 0)
            if random.once(in: 6) { throw Flaw(6) }
            return random.once(in: 2) ? .value : pause(random.below(6))
        }
        let pool = workshop.pool(limits, check: hasChecks ? check : nil, keepsAfter: { $0 as? Flaw == Flaw(1) })
        var requests: [Promise<Void>] = []
        /// The last started request of each key, separately for promises and for tasks, which begin a job later.
        var begun: [String: Int] = [:]
        for number in 0..<1_000 {
            let key = random.pick(["a", "b"] as [PoolKey])
            let (kind, time) = (random.below(6), random.below(8))
            let begin = { (item: Item) in
                expect(item.users == 0 && item.closes == 0 && item.key == key)
                item.users += 1
                let order = "\(key)\(kind < 2)"
                if !hasChecks { expect(begun[order, default: -1] < number, "out of order") }
                begun[order] = number
            }
            let request =
                switch kind {
                case 0, 1:
                    // With a clean-up, during which the resource is still in use.
                    Promise(on: net.loop) {
                        try await pool.with(key) { item in
                            begin(item)
                            defer { item.users -= 1 }
                            do { try await pause(time).value } catch {
                                await Guarantee { resolve in after(.milliseconds(2)).done(resolve) }.value
                                expectEqual(item.closes, 0)
                                throw error
                            }
                            if kind == 1 { throw Flaw(time % 2) }
                        }
                    }
                case 2:
                    pool.with(key) { item -> Promise<Void> in
                        begin(item)
                        item.users -= 1
                        throw Flaw(time % 2)
                    }
                case 3:
                    pool.with(key) { item -> Promise<Void> in
                        begin(item)
                        return pause(time).ensureThen { after(.milliseconds(2)) }.ensure { item.users -= 1 }
                    }
                default:
                    pool.with(key) { item -> Promise<Void> in
                        begin(item)
                        return pause(time).ensure { item.users -= 1 }
                    }
                }
            requests.append(request)
            request.ignoringErrors()
            if random.once(in: 3) { net.settle(.milliseconds(random.below(4))) }
            if random.once(in: 2) { request.cancel() }
            random.pick(requests.suffix(6)).cancel()
            let counts = pool.counts
            expect(counts.open + counts.making <= limits.total && counts.idle <= counts.open)
        }
        net.settle(.milliseconds(100))
        expect(requests.allSatisfy { $0.isResolved })
        let fulfilled = requests.count { $0.isFulfilled }
        expect(fulfilled > 20 && requests.count { $0.isCancelled } >= 500)
        expect(pool.counts.waiting == 0 && pool.counts.making == 0 && pool.counts.idle == pool.counts.open)
        expectEqual(workshop.items.count { $0.closes == 0 }, pool.counts.idle, "lost")
        switch seed % 3 {
        case 0: pool.close()
        case 1: hang(pool.drain(deadline: .seconds(1)))
        default: net.settle(.seconds(1))
        }
        expectEqual(pool.counts.all, [0, 0, 0, 0])
        workshop.expectAllClosed()
    }

    /// A thread runs the closure of a lease, which nothing can stop.
    @Test(.ownThread, .network) func aCancelledLeaseReturnsWhenItsClosureHas() throws {
        let (begun, end) = (Gate(), Gate())
        let isOver = Shared(false)
        var ends: [Bool] = []
        let pool = Pool<Int>(make: { _ in .value(1) }, close: { _ in ends.append(isOver.value) })
        let result = pool.with("one") { _ in
            Promise(on: ThreadPool.shared) {
                begun.open()
                end.wait()
                isOver.value = true
            }
        }
        for _ in 0..<12 { try net.loop.turn(.poll) }
        begun.wait()
        result.cancel(with: Flaw(1))
        for _ in 0..<12 { try net.loop.turn(.poll) }
        expect(result.isPending && ends.isEmpty)
        end.open()
        expect(result, failsWith: Flaw(1))
        try net.loop.run()
        expectEqual(ends, [true])
    }

    @Test(.network(.virtual)) func aLeaseThatIsReleasedOnAnotherThreadReturns() throws {
        let workshop = Workshop()
        let pool = workshop.pool()
        // As for the promise of a cancelled task.
        nonisolated(unsafe) let lease = Unmanaged.passRetained(try hang(pool.lease(nil, #fileID, #line)))
        expectEqual(pool.counts.all, [0, 1, 0, 0])
        try hang(Promise(on: ThreadPool.shared) { lease.release() })
        net.settle(.milliseconds(1))
        expectEqual(pool.counts.all, [0, 1, 1, 0])
        pool.close()
        workshop.expectAllClosed()
    }
}
