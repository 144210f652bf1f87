@testable import PromisesTestSupport

/// The whole process shares the log handler, so this suite runs in a separate process.
struct LogHandlerTests {
    @Test(.ownThread) func oneThatIsReplacedMayHaveSomethingToLogAsItGoes() async {
        await #expect(processExitsWith: .success) {
            final class LastWords: Sendable {
                deinit { _ = Promise<Int>(error: PromiseError.timedOut) }
            }
            conf.logHandler = { [words = LastWords()] _ in withExtendedLifetime(words) {} }
            conf.logHandler = { _ in }
        }
    }

    @Test func eventsSayWhatIsKnownInOneLine() {
        let place = CallSite("A.swift", 12)
        let (unknown, known) = (Provenance(), Provenance(callSite: place))
        let named = Provenance(name: "login", type: "Promise<Int>")
        func slow(_ kind: HandlerKind, at place: CallSite? = nil) -> SlowHandler {
            SlowHandler(duration: .seconds(1), kind: kind, callSite: place)
        }
        let hint = "; conf.trace = true shows the lines of promises"
        let abandoned = "was abandoned: its last resolver was released without settling it"
        let stalled = "and nothing on this loop can settle it; only another thread still can"
        let deadlock = "which is settled by a handler that cannot return before the hang does"
        let slowly = "held the loop for 1.0 seconds"
        let expected: [(event: LogEvent, text: String)] = [
            (.abandoned(known), "the promise made at A.swift:12 \(abandoned)"),
            (.abandoned(unknown), "a promise \(abandoned)"),
            (.unhandledRejection(Flaw(1), known), "unhandled rejection: \(Flaw(1)) (promise made at A.swift:12)"),
            (.unhandledRejection(Flaw(1), unknown), "unhandled rejection: \(Flaw(1))\(hint)"),
            (.unhandledRejection(Flaw(1), named), "unhandled rejection: \(Flaw(1)) (Promise<Int> \"login\")\(hint)"),
            (
                .handlerFailed(Flaw(1), request: nil, at: place),
                "a handler of the server at A.swift:12 has failed: \(Flaw(1))"
            ),
            (.handlerFailed(Flaw(1), request: "GET /", at: nil), "a handler has failed: \(Flaw(1)) (GET /)"),
            (.undeliveredHandlers(1), "an event loop ended with 1 undelivered handler"),
            (.undeliveredHandlers(2), "an event loop ended with 2 undelivered handlers"),
            (.hangStalled(unknown, at: place), "hang at A.swift:12 waits for a promise, \(stalled)"),
            (.hangDeadlock(unknown, at: place), "hang at A.swift:12 waits for a promise, \(deadlock)"),
            (.acceptPaused(Flaw(2)), "cannot accept connections for now: \(Flaw(2))"),
            (
                .awaitStalled(known, Flaw(1)),
                "a task waits for the promise made at A.swift:12 and will never resume: \(Flaw(1))"
            ),
            (
                .awaitStalled(named, Flaw(1)),
                "a task waits for the Promise<Int> \"login\" and will never resume: \(Flaw(1))\(hint)"
            ),
            (.slowHandler(slow(.promiseHandler), nil), "a promise handler \(slowly)\(hint)"),
            (
                .slowHandler(slow(.promiseHandler), named),
                "a promise handler \(slowly), the handler of the Promise<Int> \"login\"\(hint)"
            ),
            (
                .slowHandler(slow(.promiseHandler), known),
                "a promise handler \(slowly), the handler of the promise made at A.swift:12"
            ),
            (.slowHandler(slow(.promiseHandler, at: place), nil), "a promise handler at A.swift:12 \(slowly)"),
            (
                .slowHandler(slow(.promiseHandler, at: place), named),
                "a promise handler at A.swift:12 \(slowly), the handler of the Promise<Int> \"login\""
            ),
            (.slowHandler(slow(.watch), nil), "a watch \(slowly)"),
            (
                .slowHandler(slow(.timer), nil),
                "a timer \(slowly); the line of what starts after slowHandlerThreshold was set is known"
            ),
        ]
        for (event, text) in expected { expectEqual(event.description, text) }
    }

    // The address sanitizer moves locals off the stack.
    @Test(.ownThread, .disabled(if: isSanitized)) func theThousandthEventTakesNoMoreStackThanTheSecond() async {
        await #expect(processExitsWith: .success) {
            conf.logLimit = nil
            let stack = Shared<[UInt]>([])
            conf.logHandler = { _ in
                var local = 0
                let address = withUnsafeMutablePointer(to: &local) { UInt(bitPattern: $0) }
                stack.change { $0.append(address) }
            }
            for _ in 0..<1000 { _ = Promise<Int>(error: PromiseError.timedOut) }
            let seen = stack.value
            precondition(seen.count == 1000 && seen[1] == seen[999], "\(seen[1]) \(seen[999])")
        }
    }
}
