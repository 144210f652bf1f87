@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// Tracing is process-wide, and other tests' reports are compared word by word, so each test has its own process.
struct TracingTests {
    @Test(.ownThread) func traces() async {
        await #expect(processExitsWith: .success) {
            conf.trace = true
            try Bodies.roots()
            try Bodies.reports()
            try Bodies.longChainsKeepBothEnds()
            try Bodies.pendingOnesInTheOrderOfTheirMaking()
            try Bodies.theDeadAreNotPending()
        }
    }

    @Test(.ownThread) func aPromiseFromBeforeIsKnownByItsOrigin() async {
        await #expect(processExitsWith: .success) { try Bodies.aPromiseFromBeforeIsKnownByItsOrigin() }
    }

    @Test(.inLoop) func whatItWasNotOnForCostsNothing() {
        expect(!conf.trace)
        let (promise, resolver) = Promise<Int>.pending()
        let next = promise.map { $0 }
        expectEqual(String(reflecting: next), "Promise<Int>.pending")
        expect(EventLoop.pendingPromises.isEmpty)
        resolver.fulfill(1)
    }
}

// Functions, since a macro's closure may not contain everything.
private enum Bodies {
    static func roots() throws {
        func root<Value>(_ promise: Promise<Value>) -> String {
            promise.ignoringErrors()
            let text = String(reflecting: promise)
            let trace = text.split(separator: "(").last.map { $0.dropLast() } ?? ""
            // Without the promise that it waits for.
            return trace.split(separator: " [awaits").first.map(String.init) ?? text
        }
        inLoop { _ in
            func pending() -> Promise<Int> { Promise<Int>.pending().promise }
            let line: UInt = #line
            let sure = after(.seconds(1)).map { 1 }
            let roots = [
                root(Promise<Int>(error: Flaw())),
                root(Promise<Int> { $0.fulfill(1) }),
                root(Guarantee<Int> { $0(1) }.asPromise()),
                root(firstly { () throws -> Promise<Int> in throw Flaw() }),
                root(when(fulfilled: [pending()])),
                root(when(fulfilled: pending(), pending())),
                root(race(pending(), pending())),
                root(race([pending()])),
                root(race([Promise<Int>]())),
                root(after(.seconds(1)).asPromise()),
                root(Promise.value(1).map { $0 }),
                root(when(resolved: [pending()]).asPromise()),
                root(when(resolved: pending(), sure).asPromise()),
                root(when(guarantees: [sure]).asPromise()),
                root(when(guarantees: sure, sure).asPromise()),
                root(race(fulfilled: [Promise<Int>]())),
                root(when(fulfilled: [1], concurrently: 1) { _ in pending() }),
                root(when(fulfilled: [1], concurrently: 0) { _ in pending() }),
                root(forEach([1]) { _ in pending() }),
                root(forEach([1]) { _ in sure }.asPromise()),
                root(repeatWhile { pending().map { $0 > 1 } }),
                root(Promise.value([1]).thenReduce(0) { _, _ in pending() }),
                root(Promise.value([1]).thenMap { _ in pending() }),
            ]
            let names = [
                "made", "made", "made", "firstly", "when", "when", "race", "race", "race", "after", "map", "when",
                "when",
                "when", "when", "race", "when", "when", "forEach", "forEach", "repeatWhile", "thenReduce", "thenMap",
            ]
            let expected = names.enumerated().map { "\($1) at \(at(line + 3 + UInt($0)))" }
            expectEqual(roots, expected)
        }
    }

    static func aPromiseFromBeforeIsKnownByItsOrigin() throws {
        let line: UInt = #line
        let (promise, resolver) = Promise<Int>.pending()
        let untraced = promise.map { $0 }
        conf.trace = true
        let traced = promise.map { $0 }
        expect(String(reflecting: traced).hasSuffix("(made at \(at(line + 1)) → map at \(at(line + 4)))"))
        expectEqual(String(reflecting: untraced), "Promise<Int>.pending")
        let partly = untraced.map { $0 }
        expectEqual(String(reflecting: partly), "Promise<Int>.pending (map at \(at(line + 7)))")
        conf.trace = false
        let off = traced.map { $0 }
        expectEqual(String(reflecting: off), "Promise<Int>.pending")
        withExtendedLifetime(resolver) {}
    }

    static func longChainsKeepBothEnds() throws {
        let line: UInt = #line
        let (promise, resolver) = Promise<Int>.pending()
        var chain = promise
        for length in 2...1000 {
            chain = chain.map { $0 }
            let text = String(reflecting: chain)
            let steps = text.split(separator: "→").count
            if length <= 64 {
                expectEqual(steps, length)
            } else {
                expect(text.hasPrefix("Promise<Int>.pending (made at \(at(line + 1)) → … "))
                // The first, the gap and the newest.
                expect((34...66).contains(steps))
                expect(text.contains("… \(length - steps + 1) steps …"))
            }
        }
        resolver.fulfill(1)
    }

    static func reports() throws {
        var line: UInt = 0
        let lines = try loggedInLoop { loop throws in
            line = #line
            _ = Promise<Int>.pending()
            _ = Promise<Int>(error: Flaw(1)).map { $0 }
                .done { _ in }
            try loop.run()
            _ = Promise.value(1).done { _ in throw Flaw(2) }
            try loop.run()
            _ = Promise.value(1).then { _ in
                Promise<Int>(error: Flaw(3))
            }
            try loop.run()
            let (promise, resolver) = Promise<Int>.pending()
            let next = promise.map { $0 }.named("next")
            #expect(throws: PromiseError.timedOut) { try hang(next, timeout: .seconds(1)) }
            resolver.fulfill(1)
            try loop.run()
        }
        expectEqual(
            lines,
            [
                "the Promise<Int> made at \(at(line + 1)) was abandoned: its last resolver was released without settling it",
                "unhandled rejection: Flaw(number: 1) "
                    + "(Promise<()> made at \(at(line + 2)) → map at \(at(line + 2)) → done at \(at(line + 3)))",
                "unhandled rejection: Flaw(number: 2) (Promise<()> of done at \(at(line + 5)))",
                "unhandled rejection: Flaw(number: 3) "
                    + "(Promise<Int> of then at \(at(line + 7)); the promise rejected first was made at \(at(line + 8)))",
                "hang at \(at(line + 13)) waits for the Promise<Int> \"next\" made at \(at(line + 11)) → "
                    + "map at \(at(line + 12)), and nothing on this loop can settle it; only another thread still can",
            ])
    }

    static func pendingOnesInTheOrderOfTheirMaking() throws {
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

    static func theDeadAreNotPending() throws {
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
}
