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

    @Test func aHandlerRunsThereAndTheNextOneHere() throws {
        try EventLoop.withLoop { loop throws in
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

    @Test func whatAHandlerThrowsThereRejectsHere() {
        EventLoop.withLoop { _ in
            expect(Promise.value(1).map(on: queue) { _ -> Int in throw Flaw(7) }, failsWith: Flaw(7))
        }
    }

    @Test func itsThreadsSettleWhatWaitsHere() throws {
        try EventLoop.withLoop { loop throws in
            let home = loop.remote
            let strays = Shared(0)
            let pairs = (0..<scaled(1000)).map { _ in Promise<Int>.pending() }
            let resolvers = pairs.map(\.resolver)
            let seen = pairs.map { pair in
                pair.promise.get { _ in if EventLoop.current.remote != home { strays.change { $0 += 1 } } }
            }
            queue.async {
                DispatchQueue.concurrentPerform(iterations: resolvers.count) { resolvers[$0].fulfill($0) }
            }
            let sum = try hang(when(fulfilled: seen), timeout: patience).reduce(0, +)
            expectEqual(sum, pairs.count * (pairs.count - 1) / 2)
            expectEqual(strays.value, 0)
        }
    }

    @Test func aQueueMaySubmitToALoopThatRunsElsewhere() throws {
        let loop = try EventLoop.spawn(name: "elsewhere")
        defer {
            loop.stop()
            loop.join()
        }
        try EventLoop.withLoop { _ throws in
            let (answer, resolver) = Promise<Bool>.pending()
            queue.async { loop.submit { resolver.fulfill(EventLoop.current.remote == loop) } }
            expect(try hang(answer, timeout: patience))
        }
    }
}
