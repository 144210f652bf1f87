@testable import Promises
@testable import PromisesTestSupport

/// What a cancellation releases. ModelCheckingTests has the work that it stops, the handlers that it notifies, and how
/// far it climbs.
struct CancellationTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func cleanupWhoseLoopEndsIsReleased() {
        let tally = Tally()
        weak var ended: EventLoop?
        let lines = loggedInLoop { loop in
            ended = loop
            let token = tally.token()
            after(.seconds(60)).asPromise().ensure { withExtendedLifetime(token) {} }.cancel()
        }
        expect(tally.alive == 0 && lines.count == 1)
        // If it still counted a handler, that would keep it.
        expect(ended == nil)
    }

    @Test(.inLoop) func whatWasToForwardAnotherLeavesNothing() throws {
        let tally = Tally()
        let (inner, resolver) = Promise<Int>.pending()
        let outer = {
            let outer = PromiseCore(handedOut: Int.self)
            let token = tally.token()
            outer.retain()
            outer.follow(owned: .retaining(inner.core)) { core in
                withExtendedLifetime(token) {}
                PromiseCore.perform(Follow<Int>.self, core, .run)
            }
            return outer
        }()
        expectEqual(tally.alive, 1)
        outer.cancel()
        try loop.turn(.poll)
        expectEqual(tally.alive, 0)
        withExtendedLifetime(resolver) {}
        expect(Promise<Int>(outer).isCancelled)
    }

    /// A handler has returned the promise of a producer that cannot stop.
    @Test(.inLoop, arguments: [false, true])
    func theOutcomeOfWorkThatGoesOnIsReleased(isFulfilled: Bool) throws {
        struct Held: Error { let token: Tally.Token }
        let tally = Tally()
        var work: PromiseCore? = PromiseCore.pending(.of(Follow<Tally.Token>.self))
        let producer = CoreRef.retaining(work!)
        let outer = Promise.value.then { Promise<Tally.Token>(work.take()!) }
        try loop.turn(.poll)
        expect(producer.borrow { $0.state.load().isLink })
        outer.cancel()
        expect(outer.isCancelled)
        producer.borrow { isFulfilled ? $0.fulfill(tally.token()) : $0.reject(Held(token: tally.token())) }
        producer.release()
        expectEqual(tally.alive, 0)
        expect(outer.isCancelled)
    }

    @Test(.inLoop) func handlersKeepTheirOrderAroundWithdrawnOnes() throws {
        var order: [Int] = []
        let (source, resolver) = Promise<Int>.pending()
        let handlers = (0..<200).map { index in source.map { _ in order.append(index) } }
        for (index, handler) in handlers.enumerated() where index % 3 != 0 { handler.cancel() }
        let places = handlers.map { WeakCore($0.core) }
        _ = consume handlers
        source.done { _ in order.append(1000) }.orFail()
        resolver.fulfill(1)
        try loop.run()
        expectEqual(order, (0..<200).filter { $0 % 3 == 0 } + [1000])
        expect(places.allSatisfy { $0.core == nil })
    }
}
