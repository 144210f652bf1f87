@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A server on the test's own loop that answers each line with the line itself.
final class LineServer {
    let listener: Listener
    private(set) var accepted: [Connection] = []
    private(set) var lines: [String] = []
    /// Answers a line: `nil` for no answer.
    var answer: (String, Connection) -> Promise<Void> = { line, connection in connection.write(line + "\n") }

    var address: SocketAddress { listener.localAddress }

    init(_ net: Network) throws {
        listener = try net.listen()
        listener.serve { [unowned self] connection in
            accepted.append(connection)
            return connection.forEachLine { line in
                self.lines.append(line)
                return self.answer(line, connection)
            }
        }.ignoringErrors()
    }

    /// From now on it ends its first connection when the request "again" arrives.
    func forget(answering part: String = "", resets: Bool = false) {
        answer = { [unowned self] line, connection in
            if line != "again" || connection !== accepted[0] { return connection.write(line + "\n") }
            if !part.isEmpty { return connection.write(part).get { connection.close(linger: .zero) } }
            if resets { connection.abort() } else { connection.close(linger: .zero) }
            return .value
        }
    }
}

/// The server of the test, from its first use on.
var server: LineServer { Fixture.current!.kept { try! LineServer(net) } }

extension Pool<Connection> {
    func ask(_ line: String, _ address: SocketAddress, isIdempotent: Bool = false) -> Promise<String> {
        with(.address(address), isIdempotent: isIdempotent) { connection in talk(line, connection) }
    }
}

struct NoAnswer: Error {}

func talk(_ line: String, _ connection: Connection) -> Promise<String> {
    connection.write(line + "\n").then { connection.readLine() }.map { line in
        guard let line else { throw NoAnswer() }
        return line
    }
}

extension PoolCounts {
    /// Connecting, open, idle, waiting.
    var all: [Int] { [making, open, idle, waiting] }
}

final class Item {
    let number: Int
    let key: PoolKey
    var users = 0
    var uses = 0
    var closes = 0

    init(_ number: Int, _ key: PoolKey) {
        self.number = number
        self.key = key
    }
}

final class Workshop {
    private(set) var items: [Item] = []
    var making: () throws -> Promise<Void> = { .value }

    func make(_ key: PoolKey) throws -> Promise<Item> {
        try making().map { [self] in
            items.append(Item(items.count, key))
            return items[items.count - 1]
        }
    }

    func pool(
        _ limits: PoolLimits = PoolLimits(), check: ((Item) throws -> Promise<Void>)? = nil,
        keepsAfter: @escaping (any Error) -> Bool = { _ in false }
    ) -> Pool<Item> {
        Pool(limits: limits, make: make, check: check, close: { $0.closes += 1 }, keepsAfter: keepsAfter)
    }

    /// Expects that each item was closed once, and none is in use.
    func expectAllClosed(_ location: SourceLocation = #_sourceLocation) {
        let areClosed = items.allSatisfy { $0.closes == 1 && $0.users == 0 }
        #expect(areClosed, "\(items.map(\.closes))", sourceLocation: location)
    }
}

/// `after` for async functions that run on the loop.
func pause(_ milliseconds: Int) -> Promise<Void> { after(.milliseconds(milliseconds)).asPromise() }
