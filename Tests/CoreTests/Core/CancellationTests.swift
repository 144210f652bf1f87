@testable import Promises
@testable import PromisesTestSupport

/// `cancel()`: the work that it stops, the handlers that it notifies, and how far it climbs.
struct CancellationTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func itClimbsToTheResolverAndCallsOnCancelOnce() throws {
        var stops = 0
        let promise = Promise<Int> { resolver in
            resolver.onCancel { stops += 1 }
            keep(resolver, in: loop)
        }
        let end = promise.map { $0 + 1 }.then { Promise.value($0) }.ensure {}.done { _ in }
        end.cancel()
        expectEqual(stops, 0)
        try loop.run()
        end.cancel()
        promise.cancel()
        try loop.run()
        expectEqual(stops, 1)
        expect(promise.error as? PromiseError == .cancelled)
    }

    @Test(.inLoop) func theLastListenerTakesItDown() throws {
        let (source, resolver) = Promise<Int>.pending()
        let mapped = source.map { $0 + 1 }
        let (one, other) = (mapped.map { $0 * 10 }, mapped.map { $0 * 100 })
        one.cancel()
        expect(mapped.isPending)
        other.cancel()
        expect(mapped.isRejected && source.isRejected)
        resolver.fulfill(1)
        expectEqual(source.settledValue, nil)
    }

    @Test(.inLoop) func itReachesWhatWasReturnedBeforeThatWasReturnedInTurn() throws {
        let (gate, resolver) = Promise<Int>.pending()
        var ran = false
        let inner = gate.map { value in
            ran = true
            return value
        }
        let middle = Promise.value(1).then { _ in inner }
        try loop.run()
        let outer = Promise.value(1).then { _ in middle }
        try loop.run()
        outer.cancel()
        expect(outer.error as? PromiseError == .cancelled && gate.error as? PromiseError == .cancelled)
        resolver.fulfill(1)
        try loop.run()
        expect(!ran)
    }

    @Test(.inLoop) func aHandlerCancelsItsOwnPromise() throws {
        var promise: Promise<Int>?
        promise = Promise.value(1).map { value in
            promise?.cancel()
            return value
        }
        try loop.run()
        expect(promise?.error as? PromiseError == .cancelled)
    }

    @Test(.inLoop, arguments: [false, true])
    func whatAHandlerReturnsThatWasCancelledMeanwhileIsCancelledToo(isLinked: Bool) throws {
        var promise: Promise<Void>?
        let step = {
            Promise.value(1).then { _ -> Promise<Void> in
                promise?.cancel()
                return after(.seconds(60)).asPromise()
            }
        }
        promise = isLinked ? Promise.value(1).then { _ in step() } : step()
        while promise?.isPending == true { try loop.turn(.poll) }
        expect(promise?.isCancelled == true && !loop.isAlive)
    }

    @Test(.inLoop) func whatWasCancelledMayBeReturnedByWhatItWaitedFor() throws {
        let (gate, resolver) = Promise<Int>.pending()
        var cancelled: Promise<Int>?
        let source = gate.then { _ -> Promise<Int> in cancelled ?? Promise.value(0) }
        source.ignoringErrors()
        let follower = Promise.value(0).then { _ in source }
        cancelled = follower
        try loop.run()
        follower.cancel()
        resolver.fulfill(1)
        try loop.run()
        expect(source.error as? PromiseError == .cancelled)
    }

    @Test(.inLoop, arguments: [false, true]) func cleanupRunsWhenItIsCancelledFromBelow(isQueued: Bool) throws {
        var seen: [String] = []
        let source = isQueued ? Promise.value(0) : after(.seconds(60)).map { 0 }.asPromise()
        let cleaned =
            source
            .ensure { seen.append("ensure") }
            .tap { seen.append($0.isCancelled ? "cancelled" : "other") }
            .ensureThen {
                seen.append("ensureThen")
                return after(.seconds(1)).done { seen.append("done") }
            }
        let end = cleaned.done { seen.append("\($0)") }
        end.cancel()
        // A second time, before those have run.
        cleaned.cancel()
        expect(seen == [] && end.isPending && cleaned.isPending)
        try loop.run()
        expect(cleaned.isCancelled && end.isCancelled)
        expectEqual(seen, ["ensure", "cancelled", "ensureThen", "done"])
    }

    @Test(.inLoop) func cleanupThatHasRunListensNoMore() throws {
        let (source, resolver) = Promise<Int>.pending()
        let cleaned = source.ensureThen { after(.seconds(1)) }
        let other = source.map { $0 }
        cleaned.cancel()
        try loop.turn(.poll)
        expect(source.isPending)
        // It waits for its cleanup now, and `other` was the last waiter of the source.
        other.cancel()
        expect(source.error as? PromiseError == .cancelled)
        try loop.run()
        expect(cleaned.error as? PromiseError == .cancelled)
        withExtendedLifetime(resolver) {}
    }

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
        #expect(ended == nil)
    }

    @Test(.inLoop) func whatWasToForwardAnotherLeavesNothing() {
        let tally = Tally()
        let (inner, resolver) = Promise<Int>.pending()
        let outer = {
            let outer = PromiseCore(root: Int.self)
            let token = tally.token()
            outer.retain()
            outer.follow(owned: .retaining(inner.core)) { core, phase in
                withExtendedLifetime(token) {}
                PromiseCore.perform(Follow<Int>.self, core, phase)
            }
            return outer
        }()
        expectEqual(tally.alive, 1)
        outer.cancel()
        expectEqual(tally.alive, 0)
        withExtendedLifetime(resolver) {}
        expect(Promise<Int>(outer).isCancelled)
    }

    @Test(.inLoop) func aHandlerThatIsQueuedAlready() throws {
        let tally = Tally()
        var ran = false
        let promise = {
            let token = tally.token()
            return Promise.value(1).map { value in
                ran = true
                return withExtendedLifetime(token) { value }
            }
        }()
        promise.cancel()
        expectEqual(tally.alive, 0)
        try loop.run()
        expect(!ran && promise.error as? PromiseError == .cancelled && loop.waitsForNothing)
    }

    @Test(.inLoop) func aGathering() throws {
        var stops: [Int] = []
        let sources = (0..<5).map { index in
            Promise<Int> { resolver in
                resolver.onCancel { stops.append(index) }
                keep(resolver, in: loop)
            }
        }
        // This one has another waiter.
        sources[2].done { _ in }.ignoringErrors()
        when(fulfilled: sources).cancel()
        try loop.run()
        expect(stops == [0, 1, 3, 4] && sources[2].isPending)
        race(sources[2], sources[3]).cancel()
        expect(sources[2].isPending)
    }

    @Test(.inLoop) func onCancelHandlesNoError() throws {
        let lines = try loggedInLoop { loop throws in
            for isFirst in [true, false] {
                let (_, resolver) = Promise<Int>.pending()
                if isFirst { resolver.onCancel {} }
                resolver.reject(Flaw())
                if !isFirst { resolver.onCancel {} }
                try loop.run()
            }
        }
        expectEqual(lines.count { $0.hasPrefix("unhandled rejection") }, 2)
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

extension EventLoop {
    /// No handler is counted as waiting.
    fileprivate var waitsForNothing: Bool { !isAlive }
}

/// Keeps a resolver as long as the loop lives, or until it has settled.
private func keep(_ resolver: Resolver<Int>, in loop: EventLoop) {
    loop.schedule(after: .seconds(86_400)) { withExtendedLifetime(resolver) {} }.unref()
}
