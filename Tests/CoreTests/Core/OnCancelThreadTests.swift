import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// `onCancel` attached by a thread that ends before the promise settles. Under AddressSanitizer.
@Suite struct OnCancelThreadTests {
    @Test(arguments: [false, true])
    func itsThreadEndsFirst(isCancelled: Bool) {
        let tally = Tally()
        for _ in 0..<10 {
            let box = Shared<(promise: Promise<Int>, resolver: Resolver<Int>)?>(nil)
            TestThread.run {
                let pair = Promise<Int>.pending()
                let token = tally.token()
                pair.resolver.onCancel { token.use() }
                box.change { $0 = pair }
            }
            if isCancelled { box.value?.promise.cancel() } else { box.value?.resolver.fulfill(1) }
            expectEqual(box.value?.promise.isResolved, true)
        }
        expectEqual(tally.alive, 0)
    }
}
