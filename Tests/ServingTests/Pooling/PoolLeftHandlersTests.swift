import XCTest

@testable import PromisesTestSupport
@testable import Reactor
@testable import ReactorIOTestSupport

/// The report of `run()` on the main thread's loop, as in `LeftHandlersTests`.
final class PoolLeftHandlersTests: XCTestCase {
    /// Calls that wait for places which the calls that have them never give back, since they wait, too.
    func testCallsThatWaitForOneAnotherAreReported() throws {
        let pool = Pool(
            limits: PoolLimits(perKey: 1, waitTimeout: nil, idleTimeout: nil), make: { _ in Promise.value(1) })
        ThreadLoop.hasReportedLeftHandlers.store(false, ordering: .relaxed)
        let promise = pool.with { _ in pool.with { _ in Promise.value(1) } }
        let lines = try logged { for _ in 0..<2 { try EventLoop.current.run() } }
        XCTAssertEqual(lines.count, 1)
        promise.cancel()
    }
}
