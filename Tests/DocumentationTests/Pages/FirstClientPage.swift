// Made by .ci/snippets.py from docs/start/first-client.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor
import Testing

// docs/start/first-client.md: The client
/// Asks a server of records. Belongs to the thread that uses it.
public struct RecordClient {
    /// The server ended the connection without an answer.
    public struct NoAnswer: Error {}

    private let open: () -> Promise<Connection>

    public init(to address: String) {
        self.init { connect(to: address, timeout: .seconds(1)) }
    }

    /// - Parameter open: makes the connection for one attempt; the tests pass one of their own.
    public init(open: @escaping () -> Promise<Connection>) { self.open = open }

    /// Up to five attempts, with growing pauses between them, and no more than twenty seconds in all.
    public func ask(_ request: String) -> Promise<String> {
        let pauses = RetrySchedule.exponential(from: .milliseconds(200), cap: .seconds(5))
        return retry(maxAttempts: 5, delay: pauses, while: mayPass) { _ in attempt(request) }
            .timeout(.seconds(20))
    }

    /// One connection, one request, five seconds for its answer.
    private func attempt(_ request: String) -> Promise<String> {
        open().then { connection in
            try connection.write { output in try append(request, to: &output) }
                .then { connection.readFrame { try readText(&$0) } }
                .timeout(.seconds(5))
                .map { answer in
                    guard let answer else { throw NoAnswer() }
                    return answer
                }
                .ensure { connection.close() }
        }
    }

    /// Whether the next attempt may succeed where this one failed.
    private func mayPass(_ error: any Error) -> Bool {
        switch error {
        case let error as SystemError: [ECONNREFUSED, ECONNRESET, EPIPE, ETIMEDOUT].contains(error.code)
        case let error as ConnectError: error.failures.contains { mayPass($0.error) }
        case PromiseError.timedOut, is NoAnswer: true
        default: false
        }
    }
}

// docs/start/first-client.md: The program
extension Snippets {
    static func firstClient3() throws {
        func main() throws {
            let client = RecordClient(to: "127.0.0.1:7000")
            let requests = CommandLine.arguments.dropFirst()
            let asked = forEach(requests) { request in
                client.ask(request).done { answer in print("\(request): \(answer)") }
            }
            try hang(asked)
        }

        do { try main() } catch {
            print("failed: \(error)")
            exit(1)
        }
    }
}

// docs/start/first-client.md: The tests
@Suite struct RecordClientTests {
    @Test func aRefusedConnectIsTriedAgain() throws {
        try withVirtualTime {
            var attempts = 0
            let client = RecordClient {
                attempts += 1
                guard attempts == 3 else { return Promise(error: SystemError(.connect, ECONNREFUSED)) }
                return firstly {
                    let (server, client) = try Connection.pair()
                    RecordStore().serve(server).ensure { server.close() }.cauterize()
                    return .value(client)
                }
            }
            let answer = try hang(client.ask("GET fruit"), timeout: .seconds(60))
            #expect(answer == "NONE")
            #expect(attempts == 3)
            try EventLoop.current.run()                    // until nothing is left on the loop
        }
    }

    @Test func aSilentServerIsGivenUpAfterTwentySeconds() throws {
        try withVirtualTime { clock in
            var servers: [Connection] = []
            let client = RecordClient {
                firstly {
                    let (server, client) = try Connection.pair()
                    servers.append(server)
                    return .value(client)
                }
            }
            #expect(throws: PromiseError.timedOut) { try hang(client.ask("GET fruit"), timeout: .seconds(60)) }
            #expect(clock.now.nanoseconds == 20_000_000_000)
            #expect((3...4).contains(servers.count))
            try EventLoop.current.run()
        }
    }
}
