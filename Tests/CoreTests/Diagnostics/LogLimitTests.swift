@testable import PromisesTestSupport

/// Any number of events caused by a peer. In separate processes, since handler and limit are process-wide.
struct LogLimitTests {
    @Test(.ownThread) func aFloodFromOneLineReachesTheHandlerInPart() async {
        await #expect(processExitsWith: .success) {
            let count = Shared(0)
            conf.logHandler = { _ in count.change { $0 += 1 } }
            for _ in 0..<10_000 { _ = Promise<Int>(error: Flaw(1)) }
            precondition((1..<5_000).contains(count.value), "\(count.value)")
        }
    }

    @Test(.ownThread) func standardErrorThatIsFullHoldsNoThread() async {
        await #expect(processExitsWith: .success) {
            var ends: [CInt] = [-1, -1]
            precondition(pipe(&ends) == 0)
            let flags = fcntl(ends[1], F_GETFL)
            _ = fcntl(ends[1], F_SETFL, flags | O_NONBLOCK)
            while write(ends[1], "x", 1) == 1 {}
            _ = fcntl(ends[1], F_SETFL, flags)
            let standardError = dup(STDERR_FILENO)
            dup2(ends[1], STDERR_FILENO)
            _ = Promise<Int>(error: Flaw(1))
            let isBlocking = fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK == 0
            // The testing library writes to it at the end, and waits.
            dup2(standardError, STDERR_FILENO)
            precondition(isBlocking)
        }
    }

    @Test(.ownThread) func kindsLinesAndErrorsHaveTheirOwnLimits() async {
        await #expect(processExitsWith: .success) {
            let events = Shared<[LogEvent]>([])
            conf.logHandler = { event in events.change { $0.append(event) } }
            conf.logLimit = (burst: 2, period: .seconds(3600))
            LogLimitTests.causeEvents()
            let lines = events.value.map(\.description).joined(separator: "\n")
            precondition(events.value.count == 10, lines)
        }
    }

    /// Five of each of five kinds, lines and errors. (In the test itself all would have the line of the macro.)
    private static func causeEvents() {
        for _ in 0..<5 { _ = Promise<Int>(error: Flaw(1)) }
        for _ in 0..<5 { _ = Promise<Int>(error: Flaw(1)) }
        for code in [ECONNRESET, EPIPE] {
            for _ in 0..<5 { _ = Promise<Int>(error: SystemError(.send, code)) }
        }
        for _ in 0..<5 { _ = Promise<Int>.pending() }
    }

    /// Apart from the call of exit: in an optimised build a function that never returns need not release what it uses.
    @inline(never)
    private static func rejectAThousand() { for _ in 0..<1000 { _ = Promise<Int>(error: Flaw(1)) } }

    @Test(.ownThread) func suppressedEventsAreReportedAtTheEndOfTheProcess() async throws {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            conf.logLimit = (burst: 3, period: .seconds(3600))
            LogLimitTests.rejectAThousand()
            // Unlike the end of an exit test, this runs the functions registered with atexit(3).
            exit(EXIT_SUCCESS)
        }
        let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("swift-reactor: ") }
        expectEqual(lines.count, 4)
        expectEqual(lines.last?.contains("997 more events of the kind unhandledRejection at CoreTests/"), true)
    }

    @Test(.ownThread) func suppressedEventsAreReportedAfterThePeriod() async {
        await #expect(processExitsWith: .success) {
            let (reported, resolver) = Promise<Int>.pending()
            conf.logHandler = { event in
                if case .suppressed(let count, .unhandledRejection?, _) = event { resolver.fulfill(count) }
            }
            conf.logLimit = (burst: 1, period: .milliseconds(1))
            try EventLoop.withLoop { _ in
                func flood() { for _ in 0..<1000 { _ = Promise<Int>(error: Flaw(1)) } }
                flood()
                let count = try hang(reported, timeout: patience)
                precondition(count > 0)
            }
        }
    }
}
