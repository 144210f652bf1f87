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
                    let mapped = promise.map { $0 + 1 }
                    let words = LastWords { mapped.cancel() }
                    EventLoop.current.enqueue { words.use() }
                }
                isReady.open()
            }
            isReady.wait()
            resolver.fulfill(1)
            thread.join()
        }
    }
}
