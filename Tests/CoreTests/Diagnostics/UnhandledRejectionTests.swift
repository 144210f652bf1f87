@testable import PromisesTestSupport

struct UnhandledRejectionTests {
    private func report(_ number: Int, _ line: UInt) -> [String] {
        ["unhandled rejection: Flaw(number: \(number)) (promise made at \(#fileID):\(line))"]
    }

    @Test func whoHasWithdrawnWasNotTold() throws {
        let line: UInt = #line + 4
        let lines = try loggedInLoop { loop throws in
            let timer = loop.schedule(after: .seconds(60)) {}
            func make() {
                let (promise, resolver) = Promise<Int>.pending()
                let handler = promise.map { $0 }
                // A `hang` listens meanwhile, and then stops listening.
                after(.zero).done { handler.cancel() }
                _ = try? hang(promise, timeout: .seconds(1))
                resolver.reject(Flaw(9))
            }
            make()
            timer.cancel()
            try loop.run()
        }
        expectEqual(lines, report(9, line))
    }

    @Test func whatOperatorsOfADispatcherPassOnKeepsItsOrigin() {
        let line: UInt = #line + 2
        let lines = loggedInLoop { _ in
            let failed = Promise<Int>(error: Flaw(1))
            _ = failed.map(on: nil) { $0 }.tap(on: nil) { _ in }
            _ = failed.tap(on: nil) { _ in }
        }
        expectEqual(lines, report(1, line) + report(1, line))
    }

    /// An error of a handler that receives a cancellation names the promise that was cancelled first.
    @Test func whatAHandlerOfACancellationThrowsKeepsItsOrigin() throws {
        typealias Below = (Promise<Int>) -> Promise<Int>
        let chains: [Below] = [
            { $0 }, { $0.map { $0 }.map { $0 } }, { promise in Promise.value(1).then { _ in promise.map { $0 } } },
        ]
        for (index, chain) in chains.enumerated() {
            let line: UInt = #line + 2
            let lines = try loggedInLoop { loop throws in
                let (promise, resolver) = Promise<Int>.pending()
                let below = chain(promise)
                try loop.turn(.poll)
                _ = below.recover(policy: .allErrors) { _ -> Promise<Int> in throw Flaw(3) }
                below.cancel()
                try loop.run()
                withExtendedLifetime(resolver) {}
            }
            expectEqual(lines, report(3, line), "chain \(index)")
        }
    }

    @Test func whatAHandlerThrows() throws {
        let lines = try loggedInLoop { loop throws in
            _ = Promise.value(1).done { _ in throw Flaw(5) }
            try loop.run()
        }
        expectEqual(lines, ["unhandled rejection: Flaw(number: 5); conf.trace = true shows the lines of promises"])
    }

    @Test func howOften() throws {
        func expectReports(_ count: Int, _ location: SourceLocation = #_sourceLocation, of body: () -> Void) throws {
            let lines = try loggedInLoop { loop throws in
                body()
                try loop.run()
            }
            #expect(lines.count == count, "\(lines)", sourceLocation: location)
        }
        func failed() -> Promise<Int> { Promise(error: Flaw()) }
        try expectReports(2) {
            let promise = failed()
            for _ in 0..<2 { _ = promise.map { $0 } }
            promise.catch { _ in }
        }
        // To ask is not to handle.
        try expectReports(1) { _ = failed().isCancelled }
        try expectReports(0) { [late = failed()] in after(.zero).done { late.catch { _ in } } }
        // The tap has received it, and what it passed on had no handler.
        try expectReports(1) { _ = failed().tap { _ in }.ensure {} }
        // Where the promise has been rejected before a handler returns it, the two do not merge.
        try expectReports(0) { [inner = failed()] in Promise.value(1).then { _ in inner }.catch { _ in } }
        // `tap` receives the outcome, and its own promise is rejected as cancelled.
        var seen: [Flaw?] = []
        try expectReports(0) {
            let (source, resolver) = Promise<Int>.pending()
            let tapped = source.tap { seen.append($0.flaw) }
            resolver.reject(Flaw(5))
            tapped.cancel()
        }
        expectEqual(seen, [Flaw(5)])
        try expectReports(0) {
            failed().catch { _ in }
            failed().recover { _ -> Guarantee<Int> in .value(1) }
            _ = failed().recover { _ in Promise.value(1) }
            failed().pipe { _ in }
            _ = failed().result
            _ = failed().error
            expect(failed(), failsWith: Flaw())
            _ = when(fulfilled: [failed()]).error
            _ = race(failed(), failed()).error
        }
    }
}
