@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// In a separate process, since tracing is process-wide.
struct PendingPromisesTests {
    @Test(.ownThread) func areListed() async {
        await #expect(processExitsWith: .success) {
            conf.trace = true
            try Bodies.inTheOrderOfTheirMaking()
            try Bodies.notTheDead()
            try Bodies.ofALoopThatOthersSettleMeanwhile()
        }
    }
}

// Functions, since a macro's closure may not contain everything.
private enum Bodies {
    static func inTheOrderOfTheirMaking() throws {
        try inLoop { loop throws in
            let line: UInt = #line
            let (promise, resolver) = Promise<Int>.pending()
            let text = promise.map { "\($0)" }.named("text")
            text.catch { _ in }
            let timer = after(.seconds(1))
            let promises = EventLoop.pendingPromises
            expectEqual(promises.map(\.name), [nil, "text", nil, nil])
            expectEqual(promises.map(\.type), ["Promise<Int>", "Promise<String>", "Promise<()>", "Guarantee<()>"])
            expectEqual(promises.map(\.trace?.steps.count), [1, 2, 3, 1])
            expectEqual(promises.map(\.trace?.steps.last?.operation), ["made", "map", "catch", "after"])
            let first = UInt32(line) + 1
            expectEqual(promises.map(\.trace?.steps.last?.callSite.line), [first, first + 1, first + 2, first + 3])
            expectEqual(
                promises.map(\.description),
                [
                    "the Promise<Int> made at \(at(line + 1))",
                    "the Promise<String> \"text\" made at \(at(line + 1)) → map at \(at(line + 2))",
                    "the Promise<()> made at \(at(line + 1)) → map at \(at(line + 2)) \"text\" → catch at \(at(line + 3))",
                    "the Guarantee<()> of after at \(at(line + 4))",
                ])
            resolver.fulfill(1)
            expectEqual(EventLoop.pendingPromises.count, 3)
            try loop.run()
            expect(EventLoop.pendingPromises.isEmpty)
            withExtendedLifetime(timer) {}
        }
    }

    static func notTheDead() throws {
        conf.logHandler = { _ in }
        try inLoop { loop throws in
            _ = Promise<Int>.pending().promise.map { $0 }
            try loop.run()
            expect(EventLoop.pendingPromises.isEmpty)
            let (promise, resolver) = Promise<Int>.pending()
            do { _ = promise.map { $0 } }
            // It waits, and so it lives.
            expectEqual(EventLoop.pendingPromises.count, 2)
            withExtendedLifetime(resolver) {}
        }
        inLoop { _ in expect(EventLoop.pendingPromises.isEmpty) }
    }

    static func ofALoopThatOthersSettleMeanwhile() throws {
        EventLoop.withLoop { _ in
            for _ in 0..<scaled(200) {
                let pairs = (0..<10).map { _ in Promise<Int>.pending() }
                let all = when(
                    fulfilled: pairs.map { pair in pair.promise.then { Promise.value($0) }.map { $0 + 1 } })
                let resolvers = Shared(pairs.map(\.resolver))
                let thread = TestThread {
                    for resolver in resolvers.change({ resolvers in
                        defer { resolvers = [] }
                        return resolvers
                    }) {
                        resolver.fulfill(1)
                    }
                    let own = Promise<Int>.pending().promise.map { $0 }
                    _ = String(reflecting: own)
                    _ = EventLoop.pendingPromises.description
                }
                _ = EventLoop.pendingPromises.description
                _ = String(reflecting: all)
                thread.join()
                expect(all.map(\.count), gives: 10)
            }
            expect(EventLoop.pendingPromises.isEmpty)
        }
    }
}
