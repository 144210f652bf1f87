// Made by .ci/snippets.py from docs/start/first-server.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor
import Testing

// docs/start/first-server.md: The handler
/// Answers each line of a client in capitals, until the client ends.
public func answerLines(_ connection: Connection) -> Promise<Void> {
    connection.idleTimeout = .seconds(60)
    return connection.forEachLine(limit: 1024) { line in
        connection.write(line.uppercased() + "\n")
    }
}

// docs/start/first-server.md: The program
extension Snippets {
    static func firstServer3() throws {
        func main() throws {
            let listener = try Listener.bind("127.0.0.1:7000")
            print("listening on \(listener.localAddress)")
            let options = ServeOptions(maxConnections: 1000, stopSignals: [SIGTERM, SIGINT], drainTimeout: .seconds(1))
            let served = listener.serve(options, onError: { error, connection in print("\(connection): \(error)") }) { connection in
                answerLines(connection)
            }
            let result = try hang(served)
            print("idle: \(result.idle), finished: \(result.finished), aborted: \(result.aborted)")
        }

        do { try main() } catch {
            print("failed: \(error)")
            exit(1)
        }
    }
}

// docs/start/first-server.md: The tests
@Suite struct LinesTests {
    @Test func aLineIsAnsweredInCapitals() throws {
        try withVirtualTime {
            let listener = try Listener.bind("127.0.0.1:0")
            let served = listener.serve { connection in answerLines(connection) }
            let talk = connect(to: listener.localAddress).then { connection in
                connection.write("hello\n")
                    .then { connection.readLine() }
                    .ensure { connection.close() }
            }
            let line = try hang(talk, timeout: .seconds(2))
            #expect(line == "HELLO")
            listener.close()
            try hang(served, timeout: .seconds(2))
        }
    }

    @Test func aSilentClientIsDisconnectedAfterAMinute() throws {
        try withVirtualTime { clock in
            let (server, client) = try Connection.pair()
            let served = answerLines(server)
            #expect(throws: SystemError.self) { try hang(served) }
            #expect(clock.now.nanoseconds >= 60_000_000_000)
            client.close()
        }
    }
}
