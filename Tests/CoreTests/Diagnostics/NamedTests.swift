@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

struct NamedTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func areInDescriptions() {
        let (promise, resolver) = Promise<Int>.pending()
        promise.named("login")
        expectEqual("\(promise)", "Promise(\"login\": …Int)")
        expect(String(reflecting: promise).hasPrefix("Promise<Int>.pending \"login\""))
        resolver.fulfill(3)
        expectEqual("\(promise)", "Promise(\"login\": 3)")
        expectEqual("\(promise.named("again"))", "Promise(\"again\": 3)")
        let (guarantee, seal) = Guarantee<Int>.pending()
        expectEqual("\(guarantee.named("idle"))", "Guarantee(\"idle\": …Int)")
        expect(String(reflecting: guarantee).hasPrefix("Guarantee<Int>.pending \"idle\""))
        seal(4)
        expectEqual("\(guarantee)", "Guarantee(\"idle\": 4)")
    }

    @Test(.inLoop) func theSharedPromiseOfVoidKeepsNone() {
        expectEqual("\(Promise<Void>.value.named("mine"))", "\(Promise<Void>.value)")
        expectEqual("\(Guarantee<Void>.value.named("mine"))", "\(Guarantee<Void>.value)")
        // A promise with its own name keeps it.
        expectEqual("\(Promise.value(()).named("mine"))", "Promise(\"mine\": ())")
    }

    @Test(.inLoop) func areInTheReports() throws {
        var line: UInt = 0
        let lines = try loggedInLoop { loop throws in
            line = #line + 1
            let (forgotten, last) = Promise<Int>.pending()
            forgotten.named("forgotten").ignoringErrors()
            _ = consume last
            _ = Promise<Int>(error: Flaw(1)).named("unseen")
            _ = Promise.value(1).map { _ -> Int in throw Flaw(2) }.named("derived")
            try loop.run()
            let (promise, resolver) = Promise<Int>.pending()
            #expect(throws: PromiseError.timedOut) { try hang(promise.named("slow"), timeout: .seconds(1)) }
            resolver.fulfill(1)
        }
        expectEqual(
            lines,
            [
                "the Promise<Int> \"forgotten\" made at \(at(line)) was abandoned: its last resolver was "
                    + "released without settling it",
                "unhandled rejection: Flaw(number: 1) (Promise<Int> \"unseen\" made at \(at(line + 3)))",
                "unhandled rejection: Flaw(number: 2) (Promise<Int> \"derived\"); conf.trace = true shows the lines of promises",
                "hang at \(at(line + 7)) waits for the Promise<Int> \"slow\" made at \(at(line + 6)), and nothing on "
                    + "this loop can settle it; only another thread still can",
            ])
    }

    @Test(.inLoop) func areInTheDump() throws {
        let (promise, resolver) = Promise<Int>.pending()
        let line: UInt = #line - 1
        let next = promise.map { "\($0)" }.named("text")
        promise.named("number")
        _ = Promise.value(1).named("settled")
        expectEqual(EventLoop.pendingPromises.map(\.name), ["text", "number"])
        expectEqual(EventLoop.pendingPromises.map(\.type), ["Promise<String>", "Promise<Int>"])
        expectEqual(
            EventLoop.pendingPromises.map(\.description),
            [
                "the Promise<String> \"text\"", "the Promise<Int> \"number\" made at \(at(line))",
            ])
        inLoop { _ in expect(EventLoop.pendingPromises.isEmpty) }
        resolver.fulfill(1)
        expectEqual(EventLoop.pendingPromises.map(\.name), ["text"])
        try loop.run()
        expect(EventLoop.pendingPromises.isEmpty)
        withExtendedLifetime((promise, next)) {}
    }
}
