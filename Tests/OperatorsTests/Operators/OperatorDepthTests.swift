import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Long rows of these operators end in every way on a stack that has no room for a frame per operator.
@Suite struct OperatorDepthTests {
    @Test(arguments: Shape.allCases, Ending.allCases) func ends(shape: Shape, ending: Ending) {
        let tally = Tally()
        let reports = Shared<[String]>([])
        TestThread(stackSize: isSanitized ? 1 << 20 : 128 << 10) {
            let lines = logged { ending.run(shape, tally) }
            reports.change { $0 = lines }
        }.join()
        expectEqual(tally.alive, 0)
        expectEqual(tally.peak, shape.length)
        expect(reports.value.count <= 3)
    }

    enum Shape: CaseIterable {
        case row
        /// One `catch(only:)` after another.
        case cascade

        var length: Int { scaled(12_500) }

        func attach(to start: Promise<Int>, _ tally: Tally, _ loop: EventLoop) throws -> Promise<Void> {
            switch self {
            case .row:
                var promise = start
                for index in 0..<length {
                    let token = tally.token()
                    switch index % 6 {
                    case 0: promise = promise.compactMap { value in withExtendedLifetime(token) { value } }
                    case 1: promise = promise.then { value in withExtendedLifetime(token) { Promise.value(value) } }
                    case 2: promise = promise.mapError { error in withExtendedLifetime(token) { error } }
                    case 3: promise = promise.tapError(policy: .allErrors) { _ in token.use() }
                    case 4:
                        promise = promise.recover(only: Flaw.self) { error in
                            Promise(error: withExtendedLifetime(token) { error })
                        }
                    default: promise = promise.validate { _ in withExtendedLifetime(token) { true } }
                    }
                }
                return promise.asVoid()
            case .cascade:
                let (promise, resolver) = Promise<Void>.pending()
                var finalizer = start.catch(only: Flaw(2)) {}
                for _ in 0..<length {
                    let token = tally.token()
                    finalizer = finalizer.catch(only: Flaw(2)) { token.use() }
                }
                finalizer.catch(policy: .allErrors) { resolver.reject($0) }.finally { resolver.fulfill() }
                return promise
            }
        }
    }

    enum Ending: CaseIterable {
        case fulfilled, rejected, abandoned, cancelledAbove, cancelledBelow
        case loopEndsThenFulfilled, loopEndsThenAbandoned

        func run(_ shape: Shape, _ tally: Tally) {
            var resolver: Resolver<Int>?
            try? inLoop { loop throws in
                let (start, end) = try {
                    let (start, right) = Promise<Int>.pending()
                    resolver = right
                    return (start, try shape.attach(to: start, tally, loop))
                }()
                switch self {
                case .fulfilled: resolver?.fulfill(1)
                case .rejected: resolver?.reject(Flaw(1))
                case .abandoned: resolver = nil
                case .cancelledAbove: start.cancel()
                case .cancelledBelow: end.cancel()
                case .loopEndsThenFulfilled, .loopEndsThenAbandoned: return
                }
                end.ignoringErrors()
                try loop.run()
                // Cancelling the end of a cascade does not reach its start: a finalizer is not a promise.
                if self == .cancelledBelow && shape == .cascade { resolver?.fulfill(1) }
                try loop.run()
                expect(end.isResolved)
            }
            if self == .loopEndsThenFulfilled { resolver?.fulfill(1) }
            resolver = nil
        }
    }
}
