import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// A loop that ends releases objects that cancel promises, while another thread settles the sources of these. Under
/// ThreadSanitizer.
struct CancellationAtLoopEndTests {
    @Test func againstASettlementElsewhere() {
        for _ in 0..<scaled(2000) {
            let (promise, resolver) = Promise<Int>.pending()
            let isReady = Gate()
            let thread = TestThread {
                for _ in 0..<20 {
                    let canceller = Canceller(promise.map { $0 + 1 })
                    EventLoop.current.enqueue { withExtendedLifetime(canceller) {} }
                }
                isReady.open()
            }
            isReady.wait()
            resolver.fulfill(1)
            thread.join()
        }
    }

    private final class Canceller {
        private let promise: Promise<Int>

        init(_ promise: Promise<Int>) { self.promise = promise }

        deinit { promise.cancel() }
    }
}
