@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A handler returns the promise of an operation that a cancellation does not end, or that the connection hands out
/// again: only the handler's own promise is cancelled.
struct ReturnedOperationTests {
    enum Operation: CaseIterable {
        case close, shutdownWrite, writable
        /// A write of which the kernel has taken a part.
        case write

        static let shared: [Operation] = [.close, .shutdownWrite, .writable]

        /// Begins it on a connection whose other writes are queued, or has its promise again.
        func begin(_ connection: Connection) -> Promise<Void> {
            switch self {
            case .close: connection.close().asPromise()
            case .shutdownWrite: connection.shutdownWrite()
            case .writable: connection.writable().asPromise()
            case .write: connection.write("queued")
            }
        }
    }

    enum Operator: CaseIterable {
        case then, nested, inline, recover, ensureThen

        static let ofItsOutcome: [Operator] = [.then, .nested, .inline, .recover]

        /// The promise of the operator whose closure is `body`.
        func adopt(_ body: @escaping () -> Promise<Void>) -> Promise<Void> {
            // Called on the thread of the test, also inline.
            nonisolated(unsafe) let unsafeBody = body
            return switch self {
            case .then: Promise.value.then { body() }
            case .nested: Promise.value.then { Promise.value.then { body() } }
            case .inline: Promise.value.then(on: nil) { unsafeBody() }
            case .recover: Promise(error: Flaw()).recover { _ in body() }
            case .ensureThen: Promise.value.ensureThen { body().recover { _ in Guarantee.value } }
            }
        }
    }

    /// Until the budget grows, the kernel takes one byte of what is written.
    private func fill(_ connection: Connection, _ net: Network, for operation: Operation) -> SendBudget {
        let budget = net.limitSends(to: 1)
        connection.writeWatermarks = (low: 0, high: 1)
        if operation != .write { connection.write("queued").cauterize() }
        return budget
    }

    @Test(.pair, arguments: Operation.allCases, Operator.allCases)
    func itsCancellationRejectsItAndNobodyElses(_ operation: Operation, by form: Operator) throws {
        let budget = fill(connection, net, for: operation)
        let outer = form.adopt { operation.begin(connection) }
        for _ in 0..<5 { try net.loop.turn(.poll) }
        expect(outer.isPending)
        let again = Operation.shared.contains(operation) ? operation.begin(connection) : nil
        outer.cancel()
        try net.loop.turn(.poll)
        // The closure of an `ensureThen` is a clean-up, which goes on.
        expect(form == .ensureThen ? outer.isPending : outer.isCancelled)
        expect(again?.isPending != false)
        budget.remaining += 1 << 20
        peer.end()
        if let again { try hang(again, timeout: patience) }
        _ = try rejection(of: outer)
        expect(outer.isCancelled)
        // The operation has continued.
        try hang(connection.close(), timeout: patience)
        expectEqual(try peer.readToEnd(), Array("queued".utf8))
    }

    @Test(.pair, arguments: Operation.shared, Operator.allCases)
    func whoGetsItAgainDoesNotCancelIt(_ operation: Operation, by form: Operator) throws {
        let budget = fill(connection, net, for: operation)
        let outer = form.adopt { operation.begin(connection) }
        for _ in 0..<5 { try net.loop.turn(.poll) }
        let other = Promise.value.then { operation.begin(connection) }
        for _ in 0..<5 { try net.loop.turn(.poll) }
        operation.begin(connection).map {}.cancel()
        operation.begin(connection).cancel()
        other.cancel()
        try net.loop.turn(.poll)
        expect(other.isCancelled && outer.isPending)
        budget.remaining += 1 << 20
        peer.end()
        try hang(outer, timeout: patience)
        try hang(connection.close(), timeout: patience)
    }

    @Test(.pair, arguments: Operation.allCases, Operator.ofItsOutcome)
    func oneThatWasCancelledBefore(_ operation: Operation, by form: Operator) throws {
        let budget = fill(connection, net, for: operation)
        let outer = form.adopt {
            let promise = operation.begin(connection)
            promise.cancel()
            return promise
        }
        for _ in 0..<5 { try net.loop.turn(.poll) }
        // Each `writable` is a promise of its own.
        expect(outer.isCancelled == (operation == .writable))
        outer.cancel()
        budget.remaining += 1 << 20
        peer.end()
        _ = try rejection(of: outer)
        expect(outer.isCancelled)
        try hang(connection.close(), timeout: patience)
    }
}
