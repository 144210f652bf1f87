import NIOCore
import NIOPosix
import Promises
import Reactor
import Synchronization
import Testing

/// The program of docs/guides/integrations.md, with a driver that answers when the test says so, on SwiftNIO's thread.
@Suite struct DatabaseTests {
    private struct Flaw: Error, Equatable {}

    private final class TestDriver: Driver {
        private let loop = MultiThreadedEventLoopGroup.singleton.next()
        private let queries = Mutex<[(text: String, promise: EventLoopPromise<[String]>)]>([])

        func query(_ text: String) -> EventLoopFuture<[String]> {
            let promise = loop.makePromise(of: [String].self)
            queries.withLock { $0.append((text, promise)) }
            return promise.futureResult
        }

        func close() -> EventLoopFuture<Void> { loop.makeSucceededVoidFuture() }

        /// The texts of the queries that have no answer yet.
        var texts: [String] { queries.withLock { $0.map(\.text) } }

        func answer(_ result: Result<[String], any Error>) {
            queries.withLock { $0.removeFirst().promise }.completeWith(result)
        }
    }

    private let driver = TestDriver()

    /// Runs the loop until the driver has these queries.
    private func wait(for texts: [String]) throws {
        try hang(repeatWhile { after(.milliseconds(1)).map { self.driver.texts != texts } }, timeout: .seconds(60))
    }

    @Test func answersReachTheLoopAndWaitingQueriesTheirTurn() throws {
        try Reactor.EventLoop.withLoop { _ throws in
            let database = Database(driver, connections: 2, limit: .seconds(600))
            let answers = ["one", "two", "three", "four"].map { database.query($0) }
            try wait(for: ["one", "two"])
            answers[2].cancel()  // it never reaches the driver
            driver.answer(.success(["1"]))
            try wait(for: ["two", "four"])
            driver.answer(.failure(Flaw()))
            driver.answer(.success(["4"]))
            #expect(try hang(answers[0], timeout: .seconds(60)) == ["1"])
            #expect(throws: Flaw()) { try hang(answers[1], timeout: .seconds(60)) }
            #expect(answers[2].isCancelled)
            #expect(try hang(answers[3], timeout: .seconds(60)) == ["4"])
            try hang(database.close(), timeout: .seconds(60))
        }
    }

    @Test func aLateQueryKeepsItsTurnUntilTheDriverHasAnswered() throws {
        try Reactor.EventLoop.withLoop { _ throws in
            let database = Database(driver, connections: 1, limit: .milliseconds(20))
            let late = database.query("late")
            #expect(throws: PromiseError.timedOut) { try hang(late, timeout: .seconds(60)) }
            let waiting = database.query("waiting")
            #expect(throws: PromiseError.timedOut) { try hang(waiting, timeout: .seconds(60)) }
            #expect(driver.texts == ["late"])
            driver.answer(.success([]))
            // The answer frees the turn; attempts before it is here are withdrawn like "waiting".
            let tried = repeatWhile {
                database.query("next").asVoid().recover { _ in .value }.map { self.driver.texts != ["next"] }
            }
            try hang(tried, timeout: .seconds(60))
            driver.answer(.success([]))
        }
    }
}
