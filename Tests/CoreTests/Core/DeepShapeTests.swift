@testable import PromisesTestSupport

/// Long rows of promises of every shape end in every way without recursion along the row.
///
/// The stack is too small for recursion: a call per promise would overflow it.
struct DeepShapeTests {
    @Test(arguments: Shape.allCases, Ending.allCases) func ends(shape: Shape, ending: Ending) {
        let tally = Tally()
        let reports = Shared<[String]>([])
        TestThread(stackSize: isSanitized ? 1 << 20 : 128 << 10) {
            let lines = logged { ending.run(shape, tally) }
            reports.change { $0 = lines }
        }.join()
        expectEqual(tally.alive, 0)
        expectEqual(tally.peak, shape.tokens)
        expect(reports.value.count <= 3)
    }
}

extension DeepShapeTests {
    /// The shape of the row. Each promise has one closure with a token.
    enum Shape: CaseIterable {
        case maps, thens, recovers, cleanups
        /// Each is linked to the next.
        case links
        /// Each waits to settle as the next.
        case followers
        case mixed
        /// One `catch(only:)` after another.
        case cascade
        /// All wait for the first.
        case fan
        case holdingThePrevious, holdingTheNext
        case combinators, races, gathered
        case inline, inlineCleanups, inlineFollowers, dispatched

        var length: Int { scaled(isSanitized ? 6_000 : 4_000) }

        /// The number of tokens that it holds.
        var tokens: Int { self == .links || self == .inlineFollowers ? 1 : length }

        /// A row that depends on `start`; returns its end.
        func row(from start: Promise<Int>, _ tally: Tally, _ loop: EventLoop) throws -> Promise<Int> {
            if self == .links { return try links(from: start, tally.token(), loop) }
            var promise = start
            var box = Box()
            var finalizer = self == .cascade ? start.catch(only: Flaw(2)) {} : nil
            for index in 0..<length {
                let token = tally.token()
                let previous = promise
                switch self {
                case .links: break
                case .maps: promise = previous.map { value in token.with(value) }
                case .thens: promise = previous.then { value in Promise.value(token.with(value)) }
                case .recovers: promise = previous.recover { error in Promise<Int>(error: token.with(error)) }
                case .cleanups: promise = previous.ensureThen { token.with(.value) }
                case .mixed:
                    switch index % 7 {
                    case 0: promise = previous.then { value in Promise.value(token.with(value)) }
                    case 1: promise = previous.recover { error in Promise<Int>(error: token.with(error)) }
                    case 2: promise = previous.ensureThen { token.with(.value) }
                    case 3: promise = previous.tap { _ in token.use() }
                    case 4: promise = previous.compactMap { value in token.with(value) }
                    case 5: promise = previous.tapError(policy: .allErrors) { _ in token.use() }
                    default: promise = previous.recover(only: Flaw.self) { Promise(error: token.with($0)) }
                    }
                case .cascade: finalizer = finalizer?.catch(only: Flaw(2)) { token.use() }
                case .followers:
                    // A promise with a handler keeps it and is not linked. The closure of the `then` is released at
                    // once.
                    previous.tap { _ in token.use() }.ignoringErrors()
                    promise = Promise.value(()).then { previous }
                    try loop.turn(.poll)
                case .fan:
                    promise = start.map { value in token.with(value) }
                    promise.ignoringErrors()
                case .holdingThePrevious:
                    promise = previous.map { value in withExtendedLifetime(previous) { token.with(value) } }
                case .holdingTheNext:
                    let next = Box()
                    promise = previous.map { value in withExtendedLifetime(next) { token.with(value) } }
                    box.promise = promise
                    box = next
                case .combinators:
                    promise = race(
                        when(fulfilled: [previous, .value(1)]).map { values in token.with(values[0]) }, previous)
                case .races:
                    promise = race(previous.get { _ in token.use() }, after(.seconds(60)).map { 1 }.asPromise())
                case .gathered:
                    promise = when(fulfilled: [previous]).map { values in token.with(values[0]) }
                case .inline: promise = previous.map(on: nil) { value in token.with(value) }
                case .inlineCleanups: promise = previous.tap(on: nil) { _ in token.use() }
                case .inlineFollowers: promise = Promise.value(()).then(on: nil) { previous }
                case .dispatched: promise = previous.map(on: Immediate()) { value in token.with(value) }
                }
            }
            guard let finalizer else { return promise }
            let (end, resolver) = Promise<Int>.pending()
            finalizer.catch(policy: .allErrors) { resolver.reject($0) }.finally { resolver.fulfill(1) }
            return end
        }

        /// Nothing but its producer refers to a promise that is linked: the closure gives its reference away.
        private func links(from start: Promise<Int>, _ token: Tally.Token, _ loop: EventLoop) throws -> Promise<Int> {
            let box = Box()
            box.promise = start.map { token.with($0) }
            for _ in 0..<length {
                let next = Promise.value(()).then { box.take() }
                try loop.turn(.poll)
                box.promise = next
            }
            return box.take()
        }
    }

    /// The ending of the row.
    enum Ending: CaseIterable {
        case fulfilled, rejected, abandoned, cancelledAbove, cancelledBelow
        /// The loop ends first.
        case loopEndsThenFulfilled, loopEndsThenAbandoned, loopEndsWithTheFirstReady, loopEndsBeforeATimer

        func run(_ shape: Shape, _ tally: Tally) {
            var resolver: Resolver<Int>?
            try? inLoop { loop throws in
                let (start, end) = try {
                    let (pending, right) = Promise<Int>.pending()
                    resolver = right
                    let start = self == .loopEndsBeforeATimer ? after(.seconds(1)).map { 1 }.asPromise() : pending
                    let end = try shape.row(from: start, tally, loop)
                    return (self == .cancelledAbove ? start : nil, end)
                }()
                switch self {
                case .fulfilled: resolver?.fulfill(1)
                case .rejected: resolver?.reject(Flaw(1))
                case .abandoned: resolver = nil
                case .cancelledAbove: start?.cancel()
                case .cancelledBelow: end.cancel()
                case .loopEndsWithTheFirstReady:
                    resolver?.fulfill(1)
                    return
                case .loopEndsThenFulfilled, .loopEndsThenAbandoned, .loopEndsBeforeATimer: return
                }
                end.ignoringErrors()
                try loop.run()
                // Some rows have other handlers, which keep the start; and a finalizer is not a promise.
                if self == .cancelledBelow { resolver?.fulfill(1) }
                try loop.run()
                expect(end.isResolved)
            }
            if self == .loopEndsThenFulfilled { resolver?.fulfill(1) }
            resolver = nil
        }
    }
}

/// Lets a closure hold the promise after its own.
private final class Box {
    var promise: Promise<Int>?

    func take() -> Promise<Int> {
        defer { promise = nil }
        return promise!
    }
}
