@testable import PromisesTestSupport

/// `other = start.then { q }`: each of the two has one outcome, whoever asks, when, and by which query. The origin of
/// `q` decides whether the library may merge both, which must not be observable.
struct AdoptedOutcomeTests {
    @Test("that answer all questions alike", arguments: AdoptedShape.allCases, AdoptionEnd.allCases)
    func allAlike(shape: AdoptedShape, end: AdoptionEnd) throws {
        for isHeardBefore in [false, true] {
            for isHeardAfter in [false, true] {
                let play = AdoptionPlay(
                    shape: shape, end: end, isHeardBefore: isHeardBefore, isHeardAfter: isHeardAfter)
                let lines = try logged { try inLoop { try play.run($0) } }
                expectEqual(lines.count, end == .abandoned ? 1 : 0, "\(play): \(lines)")
            }
        }
    }

    @Test("whose rejection is reported once for each that nobody handles", arguments: AdoptedShape.allCases)
    func reports(shape: AdoptedShape) throws {
        for (isHeardBefore, isHeardAfter) in [(false, false), (true, false), (false, true), (true, true)] {
            let lines = try loggedInLoop { loop throws in
                let (source, resolver) = Promise<Int>.pending()
                let q = shape.make(of: source)
                if isHeardBefore { _ = q.map { $0 } }
                let other = after(.milliseconds(1)).then { q }
                hang(after(.milliseconds(2)))
                if isHeardAfter { _ = q.map { $0 } }
                resolver.reject(Flaw(1))
                try loop.run()
                withExtendedLifetime((q, other)) {}
            }
            expectEqual(lines.count, 1 + (isHeardBefore ? 1 : 0) + (isHeardAfter ? 1 : 0), "\(lines)")
        }
    }

    /// A failed `when` lets its other promises continue, until their last listener leaves.
    @Test("after a failed when, which lets it continue", .inLoop, arguments: AdoptedShape.allCases, [false, true])
    func released(shape: AdoptedShape, isHeld: Bool) throws {
        let loop = EventLoop.current
        var isStopped = false
        let (source, resolver) = Promise<Int>.pending()
        resolver.onCancel { isStopped = true }
        let (failing, rejecter) = Promise<Int>.pending()
        let held: Promise<Int>?
        let other: Promise<Int>
        do {
            let q = shape.make(of: source).map { $0 }
            when(fulfilled: [failing, q]).ignoringErrors()
            rejecter.reject(Flaw())
            other = after(.milliseconds(1)).then { q }
            held = isHeld ? q : nil
        }
        hang(after(.milliseconds(2)))
        expect(!isStopped)
        other.cancel()
        try loop.run()
        expect(other.isCancelled && isStopped)
        expectEqual(held?.isCancelled, isHeld ? true : nil)
        withExtendedLifetime(resolver) {}
    }
}

/// The ways to make the promise that a handler returns.
enum AdoptedShape: CaseIterable {
    case derived, resolver, adopted, gathered, raced, limited, dispatched, guarded, named

    func make(of source: Promise<Int>) -> Promise<Int> {
        switch self {
        case .derived: return source.map { $0 }
        case .resolver: return source
        case .adopted: return after(.zero).then { source.map { $0 } }
        case .gathered: return when(fulfilled: [source]).map { $0[0] }
        case .raced: return race([source, after(.seconds(100)).map { 0 }.asPromise()])
        case .limited: return source.timeout(.seconds(100))
        case .dispatched: return source.map(on: nil) { $0 }
        case .guarded: return source.ensureThen { .value }
        case .named: return source.map { $0 }.named("q")
        }
    }
}

enum AdoptionEnd: CaseIterable {
    case fulfilled, rejected, abandoned, cancelOther, cancelInner, cancelBoth

    var isCancellation: Bool { [.cancelOther, .cancelInner, .cancelBoth].contains(self) }
}

struct AdoptionPlay {
    let shape: AdoptedShape
    let end: AdoptionEnd
    let isHeardBefore: Bool
    let isHeardAfter: Bool

    private func outcome(_ isCancelled: Bool) -> String {
        if isCancelled { return "\(PromiseError.cancelled)" }
        switch end {
        case .rejected: return "\(Flaw(1))"
        case .abandoned: return "\(PromiseError.abandoned)"
        default: return "7"
        }
    }

    func run(_ loop: EventLoop) throws {
        var source: Promise<Int>?
        var resolver: Resolver<Int>?
        (source, resolver) = Promise<Int>.pending()
        let q = shape.make(of: source!)
        source = nil
        var early: [String: String] = [:]
        func hear(_ promise: Promise<Int>, _ name: String) {
            promise.tap { early[name] = Self.text($0) }.ignoringErrors()
        }
        if isHeardBefore { hear(q, "q before") }
        let other = after(.milliseconds(1)).then { q }
        hear(other, "other before")
        hang(after(.milliseconds(2)))
        if isHeardAfter { hear(q, "q after") }
        hear(other, "other after")
        let isHeard = isHeardBefore || isHeardAfter
        switch end {
        case .cancelOther, .cancelBoth: other.cancel()
        case .cancelInner: q.cancel()
        default: break
        }
        if end == .cancelBoth { q.cancel() }
        let isCancelled = end == .cancelInner || end == .cancelBoth || end == .cancelOther && !isHeard
        try loop.turn(.poll)
        if end.isCancellation || end == .fulfilled { resolver?.fulfill(7) }
        if end == .rejected { resolver?.reject(Flaw(1)) }
        resolver = nil
        hang(after(.milliseconds(1)))
        check(other, outcome(end.isCancellation), "other")
        check(q, outcome(isCancelled), "q")
        var expected = ["other before": outcome(end.isCancellation), "other after": outcome(end.isCancellation)]
        if isHeardBefore { expected["q before"] = outcome(isCancelled) }
        if isHeardAfter { expected["q after"] = outcome(isCancelled) }
        expectEqual(early, expected, "\(self)")
    }

    /// All queries, after it has settled.
    private func check(_ promise: Promise<Int>, _ expected: String, _ name: String) {
        let comment = "\(name) of \(self)"
        expect(!promise.isPending && promise.isResolved, comment)
        expectEqual(promise.isFulfilled, expected == "7", comment)
        expectEqual(promise.isRejected, expected != "7", comment)
        expectEqual(promise.isCancelled, expected == "\(PromiseError.cancelled)", comment)
        expectEqual(promise.result.map(Self.text), expected, comment)
        expectEqual(Self.text(Result { try hang(promise) }), expected, comment)
        let awaited = Promise(on: .current) { try await promise.value }
        expectEqual(Self.text(Result { try hang(awaited) }), expected, comment)
        var late: String?
        promise.tap { late = Self.text($0) }.ignoringErrors()
        var piped: String?
        let box = Shared<String?>(nil)
        promise.pipe { box.value = Self.text($0) }
        piped = box.value
        hang(after(.zero))
        expectEqual(late, expected, comment)
        expectEqual(piped, expected, comment)
    }

    private static func text(_ result: Result<Int, any Error>) -> String {
        switch result {
        case .success(let value): "\(value)"
        case .failure(let error): "\(error)"
        }
    }
}

/// A promise that settles as another.
struct AdoptionTests {
    @Test func aHandlerThatIsLinkedAndNeverRuns() throws {
        let tally = Tally()
        let lines = try loggedInLoop { loop throws in
            let (source, resolver) = Promise<Tally.Token>.pending()
            let token = tally.token()
            Promise.value(()).then {
                source.map { value -> Int in
                    token.use()
                    return 1
                }
            }.orFail()
            try loop.run()
            // The loop ends before it can run.
            resolver.fulfill(tally.token())
        }
        expectEqual(tally.alive, 0)
        expectEqual(lines, ["an event loop ended with 2 undelivered handlers"])
    }

    /// APlusAdoptionTests has the circles of promises.
    @Test(.ownThread) func aGuaranteeThatIsItsOwnSourceTraps() async {
        await #expect(processExitsWith: .failure) {
            inLoop { _ in
                var guarantee: Guarantee<Int>?
                guarantee = Guarantee.value(1).then { _ in guarantee! }
                hang(guarantee!)
            }
        }
        await #expect(processExitsWith: .failure) {
            inLoop { _ in
                var guarantee: Guarantee<Int>?
                guarantee = Promise<Int>(error: Flaw()).recover { _ in guarantee! }
                hang(guarantee!)
            }
        }
    }
}
