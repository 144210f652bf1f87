import Promises
import Reactor
import ReactorIO

/// Checks which addresses accept connections: several at a time, each with a time limit and retries.
package final class AddressChecks {
    /// The settings of the checks.
    package struct Settings {
        /// The maximum number of addresses checked at a time, at least 1.
        package var concurrency = 10
        /// The time limit of each attempt, including the name lookup.
        package var timeout = Duration.seconds(5)
        /// The maximum number of retries after a failed first attempt.
        package var retries = 0
        /// The pauses between the attempts.
        package var backOff = RetrySchedule.exponential(from: .milliseconds(200), cap: .seconds(10))

        package init() {}
    }

    /// Fulfilled when the address, `HOST:PORT`, has accepted a connection.
    package typealias Connector = (_ address: String) -> Promise<Void>

    private let addresses: [String]
    private let settings: Settings
    private let connector: Connector
    /// The result of each address, `nil` until it is known.
    private var results: [CheckResult?]
    /// The number of addresses at the beginning of the list whose lines have been taken.
    private var takenCount = 0
    /// The number of addresses that have a result.
    package private(set) var checkedCount = 0
    /// The number of addresses that did not accept a connection.
    package private(set) var failedCount = 0
    /// The number of addresses.
    package var count: Int { addresses.count }

    package init(
        _ addresses: [String], _ settings: Settings = Settings(), connector: @escaping Connector = connectAndClose
    ) {
        self.addresses = addresses
        self.settings = settings
        self.connector = connector
        results = Array(repeating: nil, count: addresses.count)
    }

    /// Fulfilled when every address has a result. Cancelling the promise cancels the attempts in progress.
    /// - Parameter onResult: called after each result. An error that it throws rejects the promise.
    package func start(onResult: @escaping () throws -> Void = {}) -> Promise<Void> {
        when(fulfilled: addresses.indices, concurrently: settings.concurrency) { [self] index in
            check(addresses[index]).done { [self] result in
                note(result, at: index)
                try onResult()
            }
        }.asVoid()
    }

    /// Rejected only by a cancellation.
    private func check(_ address: String) -> Promise<CheckResult> {
        retry(maxAttempts: settings.retries + 1, delay: settings.backOff, while: isWorthAnotherAttempt) {
            [settings, connector] _ in
            let began = EventLoop.current.now
            return connector(address).timeout(settings.timeout).map { CheckResult.ok(EventLoop.current.now - began) }
        }.recover { error in Promise.value(CheckResult.failed(error)) }
    }

    private func note(_ result: CheckResult, at index: Int) {
        results[index] = result
        checkedCount += 1
        if case .failed = result { failedCount += 1 }
    }

    // MARK: Lines

    /// The lines that can be printed in the order of the addresses and have not been taken: those up to the first
    /// address without a result.
    package func takeLines() -> [String] {
        let start = takenCount
        while takenCount < count, results[takenCount] != nil { takenCount += 1 }
        return lines(of: start..<takenCount)
    }

    /// All lines that have not been taken, including those after an address without a result.
    package func takeAllLines() -> [String] {
        defer { takenCount = count }
        return lines(of: takenCount..<count)
    }

    private func lines(of indices: Range<Int>) -> [String] {
        indices.compactMap { index in results[index].map { "\(addresses[index]): \($0)" } }
    }
}

/// Connects, and closes the connection at once.
package func connectAndClose(_ address: String) -> Promise<Void> {
    connect(to: address).done { $0.close(linger: .zero) }
}

/// An address with a typing error will not get better.
private func isWorthAnotherAttempt(_ error: any Error) -> Bool { !(error is SocketAddress.ParseError) }
