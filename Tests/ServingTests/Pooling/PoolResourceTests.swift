@testable import Promises
@testable import PromisesTestSupport
@testable import ReactorIO
@testable import ReactorIOTestSupport

/// Pools of resources that are not connections, and two features at once.
struct PoolResourceTests {
    @Test(.network(.virtual)) func theErrorOfABodyDecidesWhetherItsResourceStays() throws {
        let workshop = Workshop()
        let pool = workshop.pool(keepsAfter: { $0 as? Flaw == Flaw(1) })
        for (flaw, closes) in [(1, 0), (1, 0), (2, 1)] {
            let request = pool.with { _ -> Promise<Void> in pause(1).then { Promise(error: Flaw(flaw)) } }
            expect(request, failsWith: Flaw(flaw))
            expect(workshop.items.count == 1 && workshop.items[0].closes == closes)
        }
        let cancelled = pool.with { _ in pause(100) }
        net.settle(.milliseconds(1))
        cancelled.cancel()
        net.settle(.milliseconds(1))
        expectEqual(workshop.items.map(\.closes), [1, 1], "a cancellation may have left anything half done")
    }

    @Test(.network(.virtual)) func anErrorThatKeepsTheSessionKeepsItsConnection() throws {
        struct Session { let connection: Connection }
        var fd: CInt = -1
        let pool = Pool(to: .address(server.address), keepsAfter: { $0 is Flaw }) { connection, _ in
            fd = connection.fd
            return talk("login", connection).map { _ in Session(connection: connection) }
        }
        for text in ["a", "b"] {
            let request = pool.with { talk(text, $0.connection).then { _ in Promise<Void>(error: Flaw(1)) } }
            expect(request, failsWith: Flaw(1))
        }
        expect(server.lines == ["login", "a", "b"] && server.accepted.count == 1)
        // The peer of an idle session disconnects.
        server.accepted[0].abort()
        awaitArrival(of: POLLHUP, at: fd)
        net.settle(.milliseconds(1))
        expectEqual(pool.counts.all, [0, 0, 0, 0])
        let unread = pool.with { session in
            session.connection.write("c\n").then { Promise<Void>(error: Flaw(1)) }
        }
        expect(unread, failsWith: Flaw(1))
        while server.lines.last != "c" { try net.loop.turn(.poll) }
        awaitArrival(of: POLLIN, at: fd)
        net.settle(.milliseconds(1))
        // An unread answer must not be the start of another request's.
        expectEqual(try hang(pool.with { talk("d", $0.connection) }), "d")
        expectEqual(server.lines.suffix(4), ["login", "c", "login", "d"])
    }

    @Test(.network(.virtual)) func aCheckThatNeverAnswersCostsItsTimeAndADrainDoesNotWaitForIt() throws {
        let workshop = Workshop()
        let limits = PoolLimits(perKey: 1, checkTimeout: .seconds(3))
        let pool = workshop.pool(limits, check: { _ in endless().asVoid() })
        try hang(pool.with { Promise.value($0.uses) })
        let second = pool.with { Promise.value($0.number) }
        expectEqual(try hang(second), 1)
        expectEqual(net.loop.now.nanoseconds, 3_000_000_000)
        let waiting = pool.with { Promise.value($0.number) }
        let result = hang(pool.drain(deadline: .seconds(1)))
        expect(result.rejected == 1 && waiting.error as? PoolError == .closed(key: "the pool"))
        workshop.expectAllClosed()
    }

    @Test(.network(.virtual)) func aDrainClosesWhatIsInUseAtItsDeadline() throws {
        let workshop = Workshop()
        let pool = workshop.pool(PoolLimits(perKey: 1))
        let early = pool.with { _ in pause(10) }
        var (isCancelled, closes) = (false, 0)
        let busy = pool.with { item in
            pause(100_000).tap { _ in (isCancelled, closes) = (true, item.closes) }
        }
        let late = pool.with { _ in Promise<Void>.value }
        let result = hang(pool.drain(deadline: .seconds(1)))
        expect(result.finished == 1 && result.aborted == 1 && result.rejected == 1)
        expect(early.isFulfilled && late.error is PoolError)
        #expect(throws: (any Error).self) { try hang(busy) }
        expect(isCancelled && closes == 1)
        workshop.expectAllClosed()
    }

    @Test func aRequestThatWaitsForANewResourceIsReleasedWithTheLoop() throws {
        weak var waiting: PoolRequest?
        let workshop = Workshop()
        let (promise, resolver) = Promise<Void>.pending()
        workshop.making = { promise }
        try withNetwork(clock: VirtualClock()) { _ in
            let pool = workshop.pool()
            pool.with { _ in Promise.value }.ignoringErrors()
            waiting = pool.state.waiting.first
            expect(waiting != nil)
        }
        expect(waiting == nil)
        resolver.fulfill()
    }

    /// An actor that lives on the loop, with a pool of that loop.
    private actor Clerk {
        private let home: LoopRemote
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }
        private var pool: Pool<Item>?
        private var numbers: [Int] = []

        init(on home: LoopRemote) { self.home = home }

        private func open() { pool = Pool(limits: PoolLimits(perKey: 1)) { .value(Item(7, $0)) } }

        func use() async throws -> [Int] {
            open()
            for _ in 0..<2 {
                try await pool?.with { item in
                    numbers.append(item.number)
                    try await pause(1).value
                    assertIsolated()
                    item.uses += 1
                    numbers.append(item.uses)
                }
            }
            assertIsolated()
            pool?.close()
            return numbers
        }
    }

    @Test(.network(.virtual, turns: 10_000_000)) func anActorOnTheLoopUsesAPoolInItsOwnIsolation() throws {
        let clerk = Clerk(on: net.loop.remote)
        expectEqual(try hang(Promise { try await clerk.use() }), [7, 1, 7, 2])
    }

    @Test(.network(.virtual)) func aBodyOfAnActorThatLivesElsewhereIsRefused() throws {
        let promise = Promise<Void>(on: net.loop) { @MainActor in }
        #expect(throws: DispatchError.self) { try hang(promise) }
    }
}
