@testable import Promises
@testable import PromisesTestSupport

/// Cancelling twice has the effect of cancelling once, even while the first cancellation is still in progress.
struct CancelledTwiceTests {
    private let loop = EventLoop.current

    /// A producer that cannot stop: a cancellation leaves its promise, and a later one does not wait for it.
    @Test(.inLoop) func workThatContinuesIsNotWaitedFor() throws {
        let core = PromiseCore(handedOut: Int.self)
        let work = Promise<Int>(core)
        work.cancel()
        let lower = work.map { $0 }
        lower.cancel()
        try loop.turn(.poll)
        expect(work.isPending && lower.isCancelled)
        core.fulfill(1)
        expectEqual(work.settledValue, 1)
    }

    @Test(.inLoop) func theCleanupCancelsItsOwnPromise() throws {
        var runs = 0
        var promise: Promise<Int>?
        let (source, resolver) = Promise<Int>.pending()
        promise = source.tap { _ in
            runs += 1
            promise?.cancel(with: Flaw(1))
        }
        promise?.cancel()
        promise?.cancel()
        try loop.run()
        expect(runs == 1 && promise?.isCancelled == true)
        promise = nil
        withExtendedLifetime(resolver) {}
    }

    /// The first cancellation decides the error, whatever the promise waits for, and whatever its handler does with it.
    @Test(.inLoop, arguments: Shape.allCases, [true, false])
    func theFirstOneDecidesTheError(shape: Shape, hasErrorFirst: Bool) throws {
        var again = 0
        let (promise, goOn) = shape.make { again += 1 }
        if hasErrorFirst {
            promise.cancel(with: Flaw(1))
            promise.cancel(with: Flaw(2))
            promise.cancel()
        } else {
            promise.cancel()
            promise.cancel(with: Flaw(2))
        }
        let below = promise.recover { error -> Promise<Int> in
            if !hasErrorFirst { again += 1 }
            throw error
        }
        goOn()
        try loop.run()
        expect(hasErrorFirst ? promise.flaw == Flaw(1) : promise.error as? PromiseError == .cancelled)
        expect(below.isRejected && again == 0 && !loop.isAlive)
    }

    enum Shape: CaseIterable {
        case waiting, queued, adopting, linked, recovering, observing, observingAnOutcome, cleaningUp, timed, late,
            several
        case resolver, task, dispatched, running, following, followingShared

        /// - Parameter begin: called if a handler begins new work, as it must not after a cancellation.
        /// - Returns: a promise, and the end of what does not end by itself.
        func make(_ begin: @escaping () -> Void) -> (Promise<Int>, goOn: () -> Void) {
            let endless = endless()
            let shared = endless.asPromise()
            let recovery = { (promise: Promise<Int>) in
                promise.recover { _ throws -> Promise<Int> in
                    begin()
                    return .value(7)
                }
            }
            let shelf = Shelf()
            switch self {
            case .waiting: return (endless.map { $0 }, {})
            case .queued: return (recovery(Promise(error: Flaw(9))), {})
            case .adopting:
                shared.pipe { _ in }
                return (Promise.value(1).then { _ in shared }, { shared.cancel() })
            case .linked: return (Promise.value(1).then { _ in recovery(endless) }, {})
            case .recovering: return (recovery(endless), {})
            case .observing: return (endless.tap { _ in }, {})
            case .observingAnOutcome: return (Promise.value(1).tap { _ in }, {})
            case .cleaningUp:
                let promise = Promise<Int>(error: Flaw(9)).ensureThen { after(.seconds(1)) }
                try? EventLoop.current.turn(.poll)
                return (recovery(promise), {})
            case .timed: return (endless.timeout(.seconds(60)), {})
            case .late: return (endless.ensureThen { after(.seconds(9)) }.timeout(.seconds(1)), {})
            case .several: return (when(fulfilled: [endless, Promise.value(1)]).map { $0[0] }, {})
            case .resolver:
                let (promise, resolver) = Promise<Int>.pending()
                resolver.onCancelThen { after(.seconds(1)) }
                return (promise, { withExtendedLifetime(resolver) {} })
            case .task: return (Promise { try await endless.value }, {})
            case .dispatched: return (Promise.value(1).map(on: shelf) { $0 }, { shelf.run() })
            case .running, .following, .followingShared:
                if self == .followingShared { shared.pipe { _ in } }
                let promise = Promise.value(1).then(on: shelf) { _ in shared }
                if self != .running { shelf.run() }
                return (
                    promise,
                    {
                        shelf.run()
                        shared.cancel()
                    }
                )
            }
        }
    }
}

/// A cleanup is notified when its source settles, even if its own promise has been cancelled by then.
struct CancelledOnItsWayTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func tapReceivesTheOutcomeOfTheSource() throws {
        var seen: [String] = []
        let one = Promise.value(1).tap { seen.append("\($0)") }
        let two = Promise<Int>(error: Flaw(2)).tap { seen.append("\($0)") }
        one.cancel()
        two.cancel(with: Flaw(3))
        two.cancel()
        expect(one.isPending && two.isPending)
        try loop.run()
        expectEqual(seen, ["success(1)", "failure(PromisesTestSupport.Flaw(number: 2))"])
        expect(one.error as? PromiseError == .cancelled && two.flaw == Flaw(3))
    }

    @Test(.inLoop) func aPromiseThatHasAdoptedIt() throws {
        let (source, resolver) = Promise<Int>.pending()
        var seen: [String] = []
        let inner = source.tap { seen.append("\($0)") }
        let outer = Promise.value(0).then { _ in inner }
        try loop.turn(.poll)
        resolver.fulfill(1)
        outer.cancel(with: Flaw(1))
        outer.cancel()
        try loop.run()
        expect(seen == ["success(1)"] && outer.flaw == Flaw(1) && inner.isCancelled)
    }
}
