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

    @Test func withoutALineTheySayHowToGetIt() {
        let hint = "; conf.trace = true shows the lines of promises"
        let (unknown, named) = (Provenance(), Provenance(name: "login", type: "Promise<Int>"))
        let known = Provenance(callSite: CallSite("App/Login.swift", 12))
        expectEqual("\(LogEvent.unhandledRejection(Flaw(1), unknown))", "unhandled rejection: Flaw(number: 1)\(hint)")
        expectEqual("\(LogEvent.unhandledRejection(Flaw(1), named))".hasSuffix("(Promise<Int> \"login\")\(hint)"), true)
        expectEqual("\(LogEvent.awaitStalled(named, Flaw(1)))".hasSuffix(hint), true)
        let slow = SlowHandler(duration: .seconds(1), kind: .promiseHandler)
        expectEqual("\(LogEvent.slowHandler(slow, nil))", "a promise handler held the loop for 1.0 seconds\(hint)")
        expectEqual("\(LogEvent.slowHandler(slow, named))".hasSuffix("\"login\"\(hint)"), true)
        let timer = SlowHandler(duration: .seconds(1), kind: .timer)
        let timerHint = "the line of what starts after slowHandlerThreshold was set is known"
        expectEqual("\(LogEvent.slowHandler(timer, nil))", "a timer held the loop for 1.0 seconds; \(timerHint)")
        let located = SlowHandler(
            duration: .seconds(1), kind: .promiseHandler, callSite: CallSite("App/Login.swift", 12))
        let watch = SlowHandler(duration: .seconds(1), kind: .watch)
        let events: [LogEvent] = [
            .unhandledRejection(Flaw(1), known), .slowHandler(located, nil), .slowHandler(located, named),
            .slowHandler(slow, known), .slowHandler(watch, nil), .awaitStalled(known, Flaw(1)),
        ]
        for event in events { expect(!"\(event)".contains(" line"), "\(event)") }
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
