import NIOCore
import Promises
import Reactor
import ReactorNIO

/// The calls of a driver on SwiftNIO: each returns a future.
protocol Driver: Sendable {
    func query(_ text: String) -> EventLoopFuture<[String]>
    func close() -> EventLoopFuture<Void>
}

/// A database for the handlers of one loop.
final class Database {
    private let driver: any Driver
    private let turns: Limiter
    private let limit: Duration

    /// - Parameters:
    ///   - connections: the number of queries at a time. The others wait here, where a cancellation withdraws them.
    ///   - limit: the time of a query, its wait included.
    init(_ driver: any Driver, connections: Int, limit: Duration) {
        self.driver = driver
        self.turns = Limiter(connections)
        self.limit = limit
    }

    func query(_ text: String) -> Promise<[String]> { turns.run { self.begin(text) }.timeout(limit) }

    /// A future cannot be cancelled. So a cancelled query keeps its turn until the driver has answered: otherwise the
    /// driver would get more queries than it has connections.
    private func begin(_ text: String) -> Promise<[String]> {
        let answer = driver.query(text).promise()
        return Promise { resolver in
            answer.pipe { result in resolver.resolve(result) }
            resolver.onCancelThen { answer.asVoid().recover { _ in .value } }
        }
    }

    /// Called after the drain of the server.
    func close() -> Promise<Void> { driver.close().promise() }
}
