@testable import PromisesTestSupport

/// A `recover` of all errors may make a value of a cancellation. Whatever is below it then goes on as after any other error.
struct RecoveredCancellationTests {
    private let loop = EventLoop.current

    enum Below: CaseIterable {
        case map, get, then, thenShared, recover, tap, tapError, ensure, ensureThen, timeout, delay, asVoid, named
        case mapInline, mapOnPool, thenOnPool, tapOnPool, recoverOnPool
        case all, each, raceOfAll, raceFulfilled, several

        func attach(to promise: Promise<Int>) -> Promise<Int> {
            let pool = ThreadPool.shared
            return switch self {
            case .map: promise.map { $0 }
            case .get: promise.get { _ in }
            case .then: promise.then { .value($0) }
            case .thenShared: Promise.value.then { promise }
            case .recover: promise.recover { throw $0 }
            case .tap: promise.tap { _ in }
            case .tapError: promise.tapError { _ in }
            case .ensure: promise.ensure {}
            case .ensureThen: promise.ensureThen { after(.milliseconds(1)) }
            case .timeout: promise.timeout(.seconds(60))
            case .delay: promise.delay(.milliseconds(1))
            case .asVoid: promise.asVoid().map { 5 }
            case .named: promise.named("name")
            case .mapInline: promise.map(on: nil) { $0 }
            case .mapOnPool: promise.map(on: pool) { $0 }
            case .thenOnPool: promise.then(on: pool) { Promise.value($0) }
            case .tapOnPool: promise.tap(on: pool) { _ in }
            case .recoverOnPool: promise.recover(on: pool) { throw $0 }
            case .all: when(fulfilled: [promise]).map { $0[0] }
            case .each: when(resolved: [promise]).map { try $0[0].get() }
            case .raceOfAll: race([promise])
            case .raceFulfilled: race(fulfilled: [promise])
            case .several: when(fulfilled: [1], concurrently: 1) { _ in promise }.map { $0[0] }
            }
        }

        /// True for combinators, which a cancellation rejects when their sources have ended.
        var isRejected: Bool {
            switch self {
            case .all, .each, .raceOfAll, .raceFulfilled, .several: true
            default: false
            }
        }
    }

    @Test(.inRealTime, arguments: Below.allCases, [false, true])
    func whatIsBelowGoesOn(below: Below, cancelsWithError: Bool) throws {
        let recovered = endless().recover(policy: .allErrors) { error throws -> Promise<Int> in
            expect(error as? PromiseError == .cancelled)
            return .value(5)
        }
        let end = below.attach(to: recovered)
        // The handler of `thenShared` runs.
        try loop.turn(.poll)
        if cancelsWithError { end.cancel(with: Flaw(1)) } else { end.cancel() }
        _ = try? hang(end, timeout: patience)
        if cancelsWithError {
            expect(end.flaw == Flaw(1), "\(end)")
        } else if below.isRejected {
            expect(end.isCancelled, "\(end)")
        } else {
            expectEqual(end.settledValue, 5)
        }
    }
}
