// Made by .ci/snippets.py from docs/guides/operating.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// docs/guides/operating.md: Diagnosis
extension Snippets {
    static func operating1() throws {
        try EventLoop.current.onSignal(SIGUSR2) {
            print(EventLoop.current.keepAliveReasons)
            for promise in EventLoop.pendingPromises { print(promise) }
            fflush(nil)    // standard output to a pipe or to the journal is buffered
        }.unref()
    }
}
