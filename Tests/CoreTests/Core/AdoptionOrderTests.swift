@testable import PromisesTestSupport

/// A promise that follows another, `outer = source.then { inner }`: all events happen to the two in every order, on
/// this thread and on another, and a small model gives the expected results.
@Suite(.serialized) struct AdoptionOrderTests {
    @Test(arguments: Happening.orders) func everyOrder(events: [Happening]) throws {
        let other = OtherThread()
        // One recorder for all, since it intercepts other tests' reports.
        let threads = [pthread_self(), other.thread]
        let recorder = LogRecorder(where: { _ in
            let here = pthread_self()
            return threads.contains { pthread_equal($0, here) != 0 }
        })
        var failures: [String] = []
        try inLoop { loop throws in
            for play in Play.all(events) { failures += try play.run(loop, other, recorder).map { "\(play): \($0)" } }
        }
        other.stop()
        recorder.stop()
        failures += recorder.lines.filter { !$0.hasPrefix("the promise made at") }
        expect(failures.isEmpty, "the first of \(failures.count): \(failures.first ?? "")")
    }
}

/// The events, each of which happens once in a play.
enum Happening: CaseIterable {
    /// The source and the inner promise are fulfilled, rejected or abandoned.
    case source, inner
    /// A handler is attached.
    case attachToOuter, attachToInner
    /// The promises themselves are released.
    case dropOuter, dropInner

    /// All orders in which handlers are attached to promises that still exist.
    static let orders = PromisesTestSupport.orders(of: allCases.count).map { $0.map { allCases[$0] } }.filter { order in
        func place(_ event: Happening) -> Int { order.firstIndex(of: event)! }
        return place(.attachToOuter) < place(.dropOuter) && place(.attachToInner) < place(.dropInner)
    }
}

/// One way in which the events happen.
private struct Play {
    enum Outcome: CaseIterable { case fulfilled, rejected, abandoned }
    enum Shape: CaseIterable {
        case then, recover, nested
        /// The inner promise is the result of an operator, so the two can be linked.
        case linked
    }

    let events: [Happening]
    let source: Outcome
    let inner: Outcome
    /// The events on the other thread.
    let elsewhere: Set<Happening>
    /// True if the loop is driven after each event, not only at the end.
    let isDriven: Bool
    let shape: Shape
    let hasHandlers: (ofOuter: Bool, ofInner: Bool)

    /// All combinations of outcomes, threads and driving; shapes and handlers take turns.
    static func all(_ events: [Happening]) -> [Play] {
        let places: [Set<Happening>] = [
            [], [.source], [.inner], [.source, .inner], [.dropOuter, .dropInner],
            [.source, .inner, .dropOuter, .dropInner],
        ]
        let handlers = [(true, true), (true, false), (false, true), (false, false)]
        var turn = Happening.orders.firstIndex(of: events)!
        var plays: [Play] = []
        for source in Outcome.allCases {
            for inner in Outcome.allCases {
                for elsewhere in places {
                    for isDriven in [true, false] {
                        turn += 1
                        if isSanitized && turn % 5 != 0 { continue }
                        plays.append(
                            Play(
                                events: events, source: source, inner: inner, elsewhere: elsewhere, isDriven: isDriven,
                                shape: Shape.allCases[turn % 4], hasHandlers: handlers[turn / 4 % 4]))
                    }
                }
            }
        }
        return plays
    }
}

// MARK: - The model

extension Play {
    /// True if the handler runs that returns the inner promise.
    private var follows: Bool { (source == .fulfilled) == (shape != .recover) }

    private var expectedOfInner: String { text(inner, "2") }

    private var expectedOfOuter: String { follows ? expectedOfInner : text(source, "1") }

    private func text(_ outcome: Outcome, _ number: String) -> String {
        switch outcome {
        case .fulfilled: number
        case .rejected: "\(Flaw(Int(number)!))"
        case .abandoned: "\(PromiseError.abandoned)"
        }
    }

    /// True if the outer promise has settled after these events and after driving the loop.
    private func outerHasSettled(after events: ArraySlice<Happening>) -> Bool {
        events.contains(.source) && (!follows || events.contains(.inner))
    }

    /// The number of promises reported as abandoned. Nothing else is.
    var expectedReports: Int { [source, inner].filter { $0 == .abandoned }.count }
}

// MARK: - The play

extension Play {
    /// Runs all events; returns the deviations.
    func run(_ loop: EventLoop, _ other: OtherThread, _ recorder: LogRecorder) throws -> [String] {
        let reported = recorder.count
        let tally = Tally(keepsEnders: true)
        let told = Told()
        var faults: [String] = []
        let props = Props(shape, tally)
        for (index, event) in events.enumerated() {
            let act = act(event, props, told, tally)
            if elsewhere.contains(event) { other.run(act) } else { act() }
            guard isDriven else { continue }
            try loop.run()
            if let isPending = props.outer.value?.isPending {
                let shouldBePending = !outerHasSettled(after: events[...index])
                if isPending != shouldBePending { faults.append("pending: \(isPending) after \(event)") }
            }
        }
        try loop.run()
        let ofOuter = hasHandlers.ofOuter ? [expectedOfOuter] : []
        let ofInner = hasHandlers.ofInner ? [expectedOfInner] : []
        if told.ofOuter != ofOuter { faults.append("outer: \(told.ofOuter), not \(ofOuter)") }
        if told.ofInner != ofInner { faults.append("inner: \(told.ofInner), not \(ofInner)") }
        if tally.alive != 0 { faults.append("\(tally.alive) closures are left") }
        let reports = recorder.count - reported
        if reports != expectedReports { faults.append("\(reports) reports, not \(expectedReports)") }
        let here = pthread_self()
        let strangers = tally.enders.filter { pthread_equal($0, here) == 0 }.count
        if strangers != 0 { faults.append("\(strangers) closures were released elsewhere") }
        return faults
    }

    private func act(_ event: Happening, _ props: Props, _ told: Told, _ tally: Tally) -> @Sendable () -> Void {
        let (source, inner) = (source, inner)
        switch event {
        case .source: return { settle(props.sourceResolver, source, 1) }
        case .inner: return { settle(props.innerResolver, inner, 2) }
        case .dropOuter: return { props.outer.clear() }
        case .dropInner: return { props.inner.clear() }
        case .attachToOuter:
            let token = hasHandlers.ofOuter ? tally.token() : nil
            return {
                guard let token, let outer = props.outer.value else { return hush(props.outer.value) }
                outer.tap {
                    token.use(); told.outer($0)
                }.ignoringErrors()
            }
        case .attachToInner:
            let token = hasHandlers.ofInner ? tally.token() : nil
            return {
                guard let token, let inner = props.inner.value else { return hush(props.inner.value) }
                inner.tap {
                    token.use(); told.inner($0)
                }.ignoringErrors()
            }
        }
    }
}

/// Keeps a rejection from being reported, without a handler in the way.
private func hush(_ promise: Promise<Int>?) {
    promise?.pipe { _ in }
}

private func settle(_ resolver: Shared<Resolver<Int>?>, _ outcome: Play.Outcome, _ number: Int) {
    switch outcome {
    case .fulfilled: resolver.value?.fulfill(number)
    case .rejected: resolver.value?.reject(Flaw(number))
    case .abandoned: break
    }
    resolver.clear()
}

/// The promises of a play, each released by any thread.
private final class Props: Sendable {
    let outer: Shared<Promise<Int>?>
    let inner: Shared<Promise<Int>?>
    let sourceResolver: Shared<Resolver<Int>?>
    let innerResolver: Shared<Resolver<Int>?>

    init(_ shape: Play.Shape, _ tally: Tally) {
        let (source, sourceResolver) = Promise<Int>.pending()
        let (made, innerResolver) = Promise<Int>.pending()
        let inner = shape == .linked ? made.tap { _ in } : made
        let token = tally.token()
        let body = { () -> Promise<Int> in
            token.use()
            return inner
        }
        let outer =
            switch shape {
            case .then, .linked: source.then { _ in body() }
            case .recover: source.recover { _ in body() }
            case .nested: source.then { _ in Promise.value(()).then { Promise.value(()).then { body() } } }
            }
        self.outer = Shared(outer)
        self.inner = Shared(inner)
        self.sourceResolver = Shared(sourceResolver)
        self.innerResolver = Shared(innerResolver)
    }
}

/// The outcomes that the handlers received; belongs to the play's thread.
private final class Told: @unchecked Sendable {
    // The handlers run on the thread that attached them, which is also the reader.
    private(set) var ofOuter: [String] = []
    private(set) var ofInner: [String] = []

    func outer(_ result: Result<Int, any Error>) { ofOuter.append(text(result)) }
    func inner(_ result: Result<Int, any Error>) { ofInner.append(text(result)) }

    private func text(_ result: Result<Int, any Error>) -> String {
        switch result {
        case .success(let value): "\(value)"
        case .failure(let error): "\(error)"
        }
    }
}

extension Shared {
    /// Releases its value, on this thread and outside the lock.
    func clear<Wrapped: Sendable>() where Value == Wrapped? {
        let old = change { value in
            defer { value = nil }
            return value
        }
        withExtendedLifetime(old) {}
    }
}

/// A thread that runs closures for this one, which waits meanwhile.
final class OtherThread: Sendable {
    private let work = Shared<(@Sendable () -> Void)?>(nil)
    private let isAsked = Gate()
    private let isDone = Gate()
    private let testThread: Shared<TestThread?> = Shared(nil)
    private let identity = Shared<pthread_t?>(nil)

    /// Its identity.
    var thread: pthread_t { identity.value! }

    init() {
        let (work, isAsked, isDone, identity) = (work, isAsked, isDone, identity)
        let thread = TestThread {
            let here = pthread_self()
            identity.change { $0 = here }
            isDone.open()
            while true {
                isAsked.wait()
                guard work.value != nil else { return }
                work.value?()
                work.clear()
                isDone.open()
            }
        }
        self.testThread.change { $0 = thread }
        isDone.wait()
    }

    /// Runs `body` there and waits for it; its captures are released there too.
    func run(_ body: @escaping @Sendable () -> Void) {
        work.change { $0 = body }
        isAsked.open()
        isDone.wait()
    }

    /// Ends the thread.
    func stop() {
        isAsked.open()
        testThread.value?.join()
    }
}
