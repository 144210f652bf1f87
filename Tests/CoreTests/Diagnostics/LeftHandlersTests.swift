import XCTest

@testable import PromisesTestSupport
@testable import Reactor

/// The report of `run()` on the main thread's loop when it returns before its handlers have run. (XCTest calls its
/// tests on the main thread.)
final class LeftHandlersTests: XCTestCase {
    func testHandlersThatWaitForACallbackAreReportedOnceWithTheLineOfThePromise() throws {
        ThreadLoop.hasReportedLeftHandlers.store(false, ordering: .relaxed)
        XCTAssertEqual(try logged { try EventLoop.current.run() }, [], "none waits")

        let line = #line + 1
        let (promise, resolver) = Promise<Int>.pending()
        let (timed, itsResolver) = Promise<Int>.pending()
        let ends = [promise.map { $0 + 1 }.asVoid(), promise.done { _ in }, timed.done { _ in }]
        let held = try logged {
            after(.milliseconds(1)).done { itsResolver.fulfill(1) }
            EventLoop.current.schedule(after: .milliseconds(2)) { EventLoop.current.stop() }
            try EventLoop.current.run()
        }
        XCTAssertEqual(held, [], "it was stopped")

        let lines = try logged { for _ in 0..<2 { try EventLoop.current.run() } }
        XCTAssertEqual(
            lines,
            [
                "run() returned while 2 handlers wait for what only other threads or callbacks can settle, such as the promise "
                    + "made at \(#fileID):\(line); take a hold() until it has settled, or hang on it"
            ])
        resolver.fulfill(1)
        try hang(when(fulfilled: ends))
    }

    /// Calls that wait for places which the calls that have them never give back, since they wait, too.
    func testHandlersThatWaitForOneAnotherAreReported() throws {
        let limiter = Limiter(1)
        let kinds: [(name: String, begin: () -> Promise<Int>)] = [
            ("Limiter", { limiter.run { limiter.run { Promise.value(1) } } }),
            (
                "when",
                {
                    limiter.run { when(fulfilled: [0], concurrently: 1) { _ in limiter.run { Promise.value(1) } } }.map
                    { $0[0] }
                }
            ),
            (
                "circle",
                {
                    final class Box { var promise: Promise<Int>! }
                    let box = Box()
                    box.promise = after(.zero).then { box.promise.map { $0 } }
                    return box.promise
                }
            ),
        ]
        for kind in kinds {
            ThreadLoop.hasReportedLeftHandlers.store(false, ordering: .relaxed)
            let promise = kind.begin()
            let lines = try logged { for _ in 0..<2 { try EventLoop.current.run() } }
            XCTAssertEqual(lines.count, 1, kind.name)
            let isKnown = lines.first?.contains("can settle, or for one another, as in a Limiter or a Pool") == true
            XCTAssert(isKnown, "\(lines)")
            promise.cancel()
        }
    }
}
