import XCTest

@testable import PromisesTestSupport

/// The report of `run()` on the main thread's loop when it returns before its handlers have run. (XCTest calls its
/// tests on the main thread.)
final class LeftHandlersTests: XCTestCase {
    func testHandlersThatWaitForACallbackAreReportedOnceWithTheLineOfThePromise() throws {
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
}
