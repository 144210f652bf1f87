import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Long rows of promises of every shape end in every way without recursion along the row.
///
/// The stack is too small for recursion: a call per promise would overflow it.
@Suite struct DeepShapeTests {
    @Test(arguments: Shape.allCases, Ending.allCases) func ends(shape: Shape, ending: Ending) {
        let tally = Tally()
        let reports = Shared<[String]>([])
        onASmallStack {
            let lines = logged { ending.run(shape, tally) }
            reports.change { $0 = lines }
        }
        expectEqual(tally.alive, 0)
        expectEqual(tally.peak, shape.tokens)
        expect(reports.value.count <= 2)
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
        /// All wait for the first.
        case fan
        case holdingThePrevious, holdingTheNext
        case combinators

        var length: Int { scaled(12_500) }

        /// The number of tokens that it holds.
        var tokens: Int { self == .links ? 1 : length }

        /// A row that depends on `start`; returns its end.
        func row(from start: Promise<Int>, _ tally: Tally, _ loop: EventLoop) throws -> Promise<Int> {
            var promise = start
            var box = Box()
            for index in 0..<length {
                let token = tally.token()
                let previous = promise
                switch self {
                case .maps: promise = previous.map { value in touch(token, value) }
                case .thens: promise = previous.then { value in Promise.value(touch(token, value)) }
                case .recovers: promise = previous.recover { error in Promise<Int>(error: touch(token, error)) }
                case .cleanups: promise = previous.ensureThen { touch(token, .value) }
                case .mixed:
                    switch index % 4 {
                    case 0: promise = previous.then { value in Promise.value(touch(token, value)) }
                    case 1: promise = previous.recover { error in Promise<Int>(error: touch(token, error)) }
                    case 2: promise = previous.ensureThen { touch(token, .value) }
                    default: promise = previous.tap { _ in token.use() }
                    }
                case .links, .followers:
                    // A promise with a handler keeps it and is not linked. The closure of the `then` is released at
                    // once.
                    if self == .followers { previous.tap { _ in token.use() }.ignoringErrors() }
                    promise = Promise.value(()).then { previous }
                    try loop.turn(.poll)
                case .fan:
                    promise = start.map { value in touch(token, value) }
                    promise.ignoringErrors()
                case .holdingThePrevious:
                    promise = previous.map { value in withExtendedLifetime(previous) { touch(token, value) } }
                case .holdingTheNext:
                    let next = Box()
                    promise = previous.map { value in withExtendedLifetime(next) { touch(token, value) } }
                    box.promise = promise
                    box = next
                case .combinators:
                    promise = race(
                        when(fulfilled: [previous, .value(1)]).map { values in touch(token, values[0]) }, previous)
                }
            }
            return promise
        }
    }

    /// The ending of the row.
    enum Ending: CaseIterable {
        case fulfilled, rejected, abandoned
        /// The loop ends first.
        case loopEndsThenFulfilled, loopEndsThenAbandoned

        func run(_ shape: Shape, _ tally: Tally) {
            var resolver: Resolver<Int>?
            try? inLoop { loop throws in
                let end = try {
                    let (start, right) = Promise<Int>.pending()
                    resolver = right
                    return try shape.row(from: start, tally, loop)
                }()
                switch self {
                case .fulfilled: resolver?.fulfill(1)
                case .rejected: resolver?.reject(Flaw(1))
                case .abandoned: resolver = nil
                case .loopEndsThenFulfilled, .loopEndsThenAbandoned: return
                }
                end.ignoringErrors()
                try loop.run()
            }
            if self == .loopEndsThenFulfilled { resolver?.fulfill(1) }
            resolver = nil
        }
    }
}

/// Lets a closure hold the promise after its own.
private final class Box {
    var promise: Promise<Int>?
}

private func touch<Value>(_ token: Tally.Token, _ value: Value) -> Value {
    token.use()
    return value
}

/// Runs `body` on a thread whose stack has no room for a frame per promise.
private func onASmallStack(_ body: @escaping @Sendable () -> Void) {
    TestThread(stackSize: isSanitized ? 1 << 20 : 128 << 10, body).join()
}
