@testable import PromisesTestSupport

/// The effect of one handler's error on the rest of its turn. (The loop's own callbacks cannot throw.)
struct HandlerErrorTests {
    @Test func theOthersOfTheTurnGoOnAndTheErrorIsReported() throws {
        var survivors = 0
        let lines = try logged {
            try withNetwork { network in
                let (first, second) = try Connection.pair()
                let (promise, resolver) = Promise<Int>.pending()
                promise.done { _ in survivors += 1 }.orFail()
                // This one has no handler.
                _ = promise.map { _ throws -> Int in throw Flaw(70) }
                promise.done { _ in survivors += 1 }.orFail()
                after(.zero).done { survivors += 1 }
                let echoed = first.receive().done { _ in survivors += 1 }
                second.write("x").orFail()
                resolver.fulfill(1)
                try hang(echoed)
                network.settle(.milliseconds(1))
                first.close()
                second.close()
                network.settle(.milliseconds(1))
            }
        }
        expectEqual(survivors, 4)
        expectEqual(lines.count, 1)
        expectEqual(lines.first?.hasPrefix("unhandled rejection: Flaw(number: 70)"), true)
    }
}
