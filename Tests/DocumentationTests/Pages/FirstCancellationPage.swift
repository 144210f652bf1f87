// Made by .ci/snippets.py from docs/start/first-cancellation.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor
import Testing

// docs/start/first-cancellation.md: Work that can end
/// Counts the words of texts by a slow program, for at most two texts at a time.
public final class Reports {
    /// The program failed.
    public struct Failed: Error { let status: ChildExitStatus }

    private let limiter = Limiter(2)
    private let count: (String) -> Promise<String>
    /// How many programs are running.
    public private(set) var running = 0

    public init() { count = Self.countByProgram }

    /// - Parameter count: the slow work; the tests pass one of their own.
    public init(count: @escaping (String) -> Promise<String>) { self.count = count }

    public func report(on text: String) -> Promise<String> {
        limiter.run { [self] in
            running += 1
            return count(text).ensure { self.running -= 1 }
        }
    }

    /// Takes three seconds, and ten at most.
    private static func countByProgram(_ text: String) -> Promise<String> {
        ChildProcess.run(
            "sh", ["-c", "sleep 3; wc -w"], input: Array(text.utf8), timeout: .seconds(10), ownGroup: true
        ).map { output in
            guard output.status.isSuccess else { throw Failed(status: output.status) }
            return output.text.filter(\.isNumber)
        }
    }
}

// docs/start/first-cancellation.md: The program
extension Snippets {
    static func firstCancellation2() throws {
        func main() throws {
            let reports = Reports()
            let listener = try Listener.bind("127.0.0.1:7000")
            print("listening on \(listener.localAddress)")
            let options = ServeOptions(
                maxConnections: 1000, stopSignals: [SIGTERM, SIGINT], drainTimeout: .seconds(1), cancelsWhenPeerGone: true)
            let served = listener.serve(options) { connection in
                connection.forEachLine(limit: 1024) { line in
                    print("begin: \(line)")
                    return reports.report(on: line)
                        .then { connection.write("\($0) words\n") }
                        .tap { result in
                            if case .failure(let error) = result { print("no answer: \(error)") }
                        }
                        .ensure { print("end: \(line), \(reports.running) running") }
                }
            }
            let result = try hang(served)
            print("idle: \(result.idle), finished: \(result.finished), aborted: \(result.aborted), running: \(reports.running)")
        }

        do { try main() } catch {
            print("failed: \(error)")
            exit(1)
        }
    }
}

// docs/start/first-cancellation.md: Work of your own
extension Snippets {
    static func firstCancellation3() throws {
        let answer = Promise<Answer> { resolver in
            let query = database.start { result in resolver.resolve(result) }
            resolver.onCancel { [weak query] in query?.stop() }
        }
        _ = answer
    }
}

// docs/start/first-cancellation.md: Work of your own
extension Snippets {
    static func firstCancellation4() throws {
        var log: [String] = []
        let work = after(.seconds(60))
            .ensureThen { after(.milliseconds(5)).done { log.append("said goodbye") } }
            .ensure { log.append("gave the slot back") }
        work.cancel()
        assert(log.isEmpty)                                   // the clean-ups are jobs of the loop
        hang(work.cancelAndWait())
        assert(log == ["said goodbye", "gave the slot back"])
        _ = log
        _ = work
    }
}

// docs/start/first-cancellation.md: The tests
@Suite struct ReportsTests {
    @Test func aCancelledReportFreesItsSlot() throws {
        try withVirtualTime { clock in
            let reports = Reports { text in after(.seconds(3)).map { "\(text.count)" } }
            let work = ["a", "bb", "ccc"].map { reports.report(on: $0) }
            hang(work[0].cancelAndWait())
            let counts = try hang(when(fulfilled: work[1], work[2]), timeout: .seconds(60))
            #expect(counts.0 == "2" && counts.1 == "3")
            #expect(clock.now.nanoseconds == 3_000_000_000)      // side by side, since the first slot was free
            #expect(reports.running == 0)
        }
    }

    @Test func aClientThatLeavesEndsItsProgram() throws {
        try EventLoop.withLoop { _ in
            let reports = Reports()
            let listener = try Listener.bind("127.0.0.1:0")
            let (began, begin) = Guarantee<Void>.pending()
            listener.serve(ServeOptions(cancelsWhenPeerGone: true)) { connection in
                connection.forEachLine { line in
                    defer { begin(()) }
                    return reports.report(on: line).then { connection.write($0) }
                }
            }
            let client = try hang(connect(to: listener.localAddress), timeout: .seconds(10))
            try hang(client.write("one two\n"), timeout: .seconds(10))
            try hang(began, timeout: .seconds(10))
            client.close()
            _ = try hang(listener.drain(deadline: .seconds(10)), timeout: .seconds(20))
            #expect(reports.running == 0)
        }
    }
}
