import Promises
import Testing

/// The log handler is everybody's, so this has a process of its own.
@Suite struct LogHandlers {
    @Test func oneThatIsReplacedMayHaveSomethingToLogAsItGoes() async {
        await #expect(processExitsWith: .success) {
            final class LastWords: Sendable {
                deinit { _ = Promise<Int>(error: PromiseError.timedOut) }
            }
            conf.logHandler = { [words = LastWords()] _ in withExtendedLifetime(words) {} }
            conf.logHandler = { _ in }
        }
    }
}
