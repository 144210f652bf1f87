import Dispatch

@testable import PromisesTestSupport

extension DispatchQueue: Dispatcher {
    /// Runs `job` on the queue.
    public func dispatch(_ job: @escaping @Sendable () -> Void) { async(execute: job) }
}

/// A dispatch queue becomes a dispatcher by one method, and its threads may settle promises. The library itself knows nothing
/// of Dispatch.
struct DispatchQueueTests {
    private let queue = DispatchQueue(label: "worker")

    @Test(.inRealTime) func aHandlerRunsThereAndTheNextOneHere() throws {
        let loop = EventLoop.current
        let home = loop.remote
        var cameBack = false
        let label = Promise.value(20)
            .map(on: queue) { [queue] number in
                dispatchPrecondition(condition: .onQueue(queue))
                return EventLoop.current.remote == home ? -1 : number + 1
            }
            .get { _ in cameBack = EventLoop.current.remote == home }
        expectEqual(try hang(label, timeout: patience), 21)
        expect(cameBack)
    }
}
