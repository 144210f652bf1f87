@testable import PromisesTestSupport

private struct Maybe: CancellableError {
    let isCancelled: Bool
}

struct ErrorValueTests {
    @Test func whatIsCancellation() {
        expect(PromiseError.cancelled.isCancelled)
        expect(CancellationError().isCancelled)
        expect(Maybe(isCancelled: true).isCancelled)
        expect((Maybe(isCancelled: true) as any Error).isCancelled)
        expect(!Maybe(isCancelled: false).isCancelled && !(Maybe(isCancelled: false) as any Error).isCancelled)
        expect(!Flaw().isCancelled)
        expect((PromiseError.cancelled as any Error).isCancelled)
        expect((CancellationError() as any Error).isCancelled)
    }

    @Test func logEventsAreOneLine() {
        let callSite = CallSite("Module/File.swift", 12)
        expectEqual("\(callSite)", "Module/File.swift:12")
        let events: [LogEvent] = [
            .abandoned(Provenance(callSite: callSite)), .abandoned(Provenance()),
            .unhandledRejection(Flaw(1), Provenance(callSite: callSite)), .unhandledRejection(Flaw(1), Provenance()),
            .undeliveredHandlers(1), .undeliveredHandlers(2), .hangStalled(Provenance(), at: callSite),
            .hangDeadlock(Provenance(), at: callSite),
            .acceptPaused(Flaw(2)), .awaitStalled(Provenance(callSite: callSite), PromiseError.loopEnded),
        ]
        expectEqual(
            events.map(\.description),
            [
                "the promise made at Module/File.swift:12 was abandoned: its last resolver was released without settling it",
                "a promise was abandoned: its last resolver was released without settling it",
                "unhandled rejection: Flaw(number: 1) (promise made at Module/File.swift:12)",
                "unhandled rejection: Flaw(number: 1); conf.trace = true shows the lines of promises",
                "an event loop ended with 1 undelivered handler",
                "an event loop ended with 2 undelivered handlers",
                "hang at Module/File.swift:12 waits for a promise, and nothing on this loop can settle it; "
                    + "only another thread still can",
                "hang at Module/File.swift:12 waits for a promise, which is settled by a handler that cannot return before "
                    + "the hang does",
                "cannot accept connections for now: Flaw(number: 2)",
                "a task waits for the promise made at Module/File.swift:12 and will never resume: \(PromiseError.loopEnded)",
            ])
    }
}
