import Glibc
import Promises
import Reactor
import Synchronization
import Testing
import XCTest

/// The program that runs the documentation's blocks with an `assert` and the tests among them; see PagesTests.
@main struct Program {
    static func main() async {
        let failures = XCTMain(Snippet.cases, arguments: [CommandLine.arguments[0]]) as CInt
        guard failures == 0 else { exit(failures) }
        await Testing.__swiftPMEntryPoint() as Never
    }
}

/// The blocks of the documentation, each a function, written by `Tests/Fixtures/snippets.py`.
enum Snippets {}

/// A block with an `assert`, which is therefore run.
struct Snippet: Sendable, CustomTestStringConvertible {
    let place: String
    let asserts: Int
    let body: @Sendable () throws -> Void

    init(_ place: String, asserts: Int, _ body: @escaping @Sendable () throws -> Void) {
        self.place = place
        self.asserts = asserts
        self.body = body
    }

    var testDescription: String { place }
}

@Suite(.serialized) struct RunningSnippets {
    /// Each runs on its own thread, so that tasks that it starts find a thread of Swift's pool while it hangs, with its
    /// own loop, whose clock is virtual. Work left on the loop runs to the end.
    @Test(arguments: Snippet.all) func eachHoldsWhatItSays(_ snippet: Snippet) async {
        Asserted.log.withLock { $0 = Asserted() }
        let thrown: (any Error)? = await onAThread {
            do {
                try EventLoop.withLoop(clock: VirtualClock()) { loop in
                    try snippet.body()
                    try loop.run()
                }
                return nil
            } catch { return error }
        }
        if let thrown { Issue.record(thrown) }
        let asserted = Asserted.log.withLock { $0 }
        #expect(asserted.failed == [], "lines of the page")
        #expect(asserted.reached.count == snippet.asserts, "not every assert of the snippet has been reached")
    }
}

/// The results of the running snippet's asserts.
private struct Asserted {
    var reached: Set<UInt> = []
    var failed: Set<UInt> = []

    static let log = Mutex(Asserted())
}

/// Replaces the standard library's, which would end all tests, and does nothing in release builds.
func assert(_ condition: @autoclosure () -> Bool, line: UInt = #line) {
    let holds = condition()
    Asserted.log.withLock {
        $0.reached.insert(line)
        if !holds { $0.failed.insert(line) }
    }
}

/// The argument of pthread_create is a pointer.
private final class Work {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Runs `body` on a new thread, and returns its result when that thread is about to end.
private func onAThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    return await withCheckedContinuation { continuation in
        let box = Work { continuation.resume(returning: body()) }
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            {
                Unmanaged<Work>.fromOpaque($0!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(box).toOpaque())
        precondition(code == 0, "pthread_create failed with \(code)")
        pthread_detach(thread)
    }
}
