@testable import PromisesTestSupport

/// The order for several promises; APlusHandlerTests has the order for one.
struct HandlerOrderTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func acrossPromisesInTheOrderOfSettling() throws {
        var order: [Int] = []
        let pairs = (0..<4).map { _ in Promise<Int>.pending() }
        for (index, pair) in pairs.enumerated() { pair.promise.done { _ in order.append(index) }.orFail() }
        for index in [2, 0, 3, 1] { pairs[index].resolver.fulfill(index) }
        try loop.run()
        expectEqual(order, [2, 0, 3, 1])
    }

    @Test(.inLoop) func ofAPromiseThatAHandlerHasReturnedBeforeThoseBehindTheHandler() throws {
        var order: [Int] = []
        let (source, resolver) = Promise<Int>.pending()
        let inner = source.map { $0 }
        let outer = Promise.value(()).then { inner }
        outer.done { _ in order.append(0) }.orFail()
        try loop.run()
        inner.done { _ in order.append(1) }.orFail()
        outer.done { _ in order.append(2) }.orFail()
        inner.done { _ in order.append(3) }.orFail()
        resolver.fulfill(1)
        try loop.run()
        expectEqual(order, [1, 3, 0, 2])
    }

    @Test(.inLoop) func chainsTakeTurns() throws {
        var order: [String] = []
        for name in ["a", "b"] {
            Promise.value(()).map { order.append("\(name)1") }.map { order.append("\(name)2") }
                .done { order.append("\(name)3") }.orFail()
        }
        try loop.run()
        expectEqual(order, ["a1", "b1", "a2", "b2", "a3", "b3"])
    }
}
