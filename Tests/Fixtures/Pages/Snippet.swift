import Glibc
import Promises
import Reactor
import Synchronization
import Testing
import XCTest

/// The program that runs the documentation's blocks; see PagesTests. Those with an `assert`, and the tests among them.
@main struct Program {
    static func main() async {
        let failures = XCTMain(Snippet.cases, arguments: [CommandLine.arguments[0]]) as CInt
        guard failures == 0 else { exit(failures) }
        await Testing.__swiftPMEntryPoint() as Never
    }
}

/// The blocks of the documentation, each a function; see `.ci/snippets.py`, which writes them.
enum Snippets {}

/// A block that says with `assert` what it does, and so is run.
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
    /// Each on a thread of its own, so that what it starts finds a thread of Swift's pool while it hangs; with a loop of
    /// its own, whose clock is virtual. What it has left on the loop runs until nothing is left.
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

/// What has become of the asserts of the snippet that is running.
private struct Asserted {
    var reached: Set<UInt> = []
    var failed: Set<UInt> = []

    static let log = Mutex(Asserted())
}

/// Stands in for the standard library's, which would end all tests, and is silent in release builds.
func assert(_ condition: @autoclosure () -> Bool, line: UInt = #line) {
    let holds = condition()
    Asserted.log.withLock {
        $0.reached.insert(line)
        if !holds { $0.failed.insert(line) }
    }
}

/// What pthread_create takes is a pointer.
private final class Work {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Runs `body` on a new thread, and gives its result when that thread is about to end.
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
