import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// The whole process shares the log handler, so this suite has a process of its own.
@Suite struct LogHandlerTests {
    @Test(.ownThread) func oneThatIsReplacedMayHaveSomethingToLogAsItGoes() async {
        await #expect(processExitsWith: .success) {
            final class LastWords: Sendable {
                deinit { _ = Promise<Int>(error: PromiseError.timedOut) }
            }
            conf.logHandler = { [words = LastWords()] _ in withExtendedLifetime(words) {} }
            conf.logHandler = { _ in }
        }
    }

    @Test func events() {
        let promise = Provenance(name: "login", callSite: CallSite("App/Login.swift", 12))
        expect(
            "\(LogEvent.unhandledRejection(PromiseError.timedOut, promise))".contains(
                "\"login\" made at App/Login.swift:12"))
        // One line, whatever an error says.
        let error = SystemError(.open, EIO, detail: "a\nb")
        expectEqual("\(LogEvent.acceptPaused(error))".contains("open a\\nb: "), true)
        let slow = SlowHandler(duration: .seconds(1), kind: .timer)
        expectEqual("\(LogEvent.slowHandler(slow, nil))", "a timer held the loop for 1.0 seconds")
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
