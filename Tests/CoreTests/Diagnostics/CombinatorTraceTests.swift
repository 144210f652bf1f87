@testable import PromisesTestSupport

/// Traces of combinators.
struct CombinatorTraceTests {
    // In a separate process, since tracing is process-wide.
    @Test(.ownThread) func traces() async {
        await #expect(processExitsWith: .success) {
            Bodies.names()
            try Bodies.whatASeriesWaitsFor()
        }
    }
}

// Functions, since a macro's closure may not contain everything.
private enum Bodies {
    static func names() {
        conf.trace = true
        conf.logHandler = { _ in }
        // The last step, without the promise that it waits for.
        func last<Each: Thenable>(_ thenable: Each) -> String {
            let text = String(reflecting: thenable)
            guard let start = text.lastIndex(of: "(") else { return text }
            let trace = text[text.index(after: start)...].dropLast()
            let steps = trace.split(separator: " [awaits").first?.split(separator: " → ")
            return steps?.last.map(String.init) ?? text
        }
        inLoop { _ in
            let (one, resolver) = Promise<Int>.pending()
            let sure = after(.seconds(1)).map { 1 }
            let line: UInt = #line
            let steps = [
                last(when(resolved: [one])),
                last(when(resolved: one, sure)),
                last(when(notAllRejected: [one])),
                last(when(guarantees: [sure])),
                last(when(guarantees: sure, sure)),
                last(race(fulfilled: [Promise<Int>]())),
                last(race(one, sure)),
                last(when(fulfilled: [1], concurrently: 1) { _ in one }),
                last(when(fulfilled: [1], concurrently: 0) { _ in one }),
                last(forEach([1]) { _ in one }),
                last(forEach([1]) { _ in sure }),
                last(repeatWhile { one.map { $0 > 1 } }),
                last(Promise.value([1]).thenReduce(0) { _, _ in one }),
                last(Promise.value([1]).thenMap { _ in one }),
            ]
            let names = [
                "when", "when", "when", "when", "when", "race", "race", "when", "when", "forEach", "forEach",
                "repeatWhile", "thenReduce", "thenMap",
            ]
            let expected = names.enumerated().map { "\($1) at \(#fileID):\(line + 2 + UInt($0))" }
            for (step, expected) in zip(steps, expected) { precondition(step == expected, "\(step), not \(expected)") }
            precondition(steps.count == expected.count)
            withExtendedLifetime(resolver) {}
        }
    }

    static func whatASeriesWaitsFor() throws {
        conf.trace = true
        try inLoop { loop throws in
            let line: UInt = #line + 1
            let series = forEach([1, 2]) { number in after(.seconds(number)).named("nap \(number)").asPromise() }
            try loop.turn(.poll)
            let first = String(reflecting: series)
            precondition(first.contains("forEach at \(#fileID):\(line)"), first)
            precondition(first.contains("\"nap 1\""), first)
            hang(after(.milliseconds(1500)))
            let second = String(reflecting: series)
            precondition(second.contains("\"nap 2\""), second)
            try hang(series)
            let (round, resolver) = Promise<Bool>.pending()
            let endless = repeatWhile { round.named("the first") }
            precondition(String(reflecting: endless).contains("\"the first\""), "\(endless)")
            resolver.fulfill(false)
        }
    }
}
