@testable import PromisesTestSupport

struct CauterizeTests {
    @Test func logsTheErrorAndWhatIsKnownOfThePromise() throws {
        var line: UInt = 0
        let lines = try loggedInLoop { loop throws in
            line = #line
            Promise<Int>(error: Flaw(1)).map { $0 }.cauterize()
            Promise.value(1).done { _ in throw Flaw(2) }.named("login").cauterize()
            // The promise of a `timeout` has neither a name nor, without tracing, its own line.
            after(.seconds(2)).timeout(.seconds(1)).cauterize()
            try loop.run()
        }
        func at(_ offset: UInt) -> String { "\(#fileID):\(line + offset)" }
        expectEqual(
            lines,
            [
                "cauterized: Flaw(number: 1) (Promise<Int> made at \(at(1)), cauterized at \(at(1)))",
                "cauterized: Flaw(number: 2) (Promise<()> \"login\", cauterized at \(at(2)))",
                "cauterized: the time limit expired (Promise<()>, cauterized at \(at(4)))",
            ])
    }

    @Test func aValueAndACancellationAreNotLogged() throws {
        let cancelled = Promise<Int>(error: PromiseError.cancelled)
        let lines = try loggedInLoop { loop throws in
            Promise.value(1).cauterize()
            cancelled.cauterize()
            try loop.run()
        }
        expectEqual(lines, [])
        let asked = try loggedInLoop { loop throws in
            cancelled.cauterize(policy: .allErrors)
            try loop.run()
        }
        expectEqual(asked.count, 1)
    }

    @Test func finallyRunsAfterEarlierHandlersOfAPromiseThatIsBeingSettled() throws {
        let log = Shared<[String]>([])
        try inLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            // Runs inside the settlement, before the handler below has been notified.
            promise.pipe { _ in
                promise.cauterize().finally { log.change { $0.append("finally") } }
            }
            promise.done { _ in log.change { $0.append("done") } }.cauterize()
            resolver.fulfill(1)
            try loop.run()
        }
        expectEqual(log.value, ["done", "finally"])
    }
}
