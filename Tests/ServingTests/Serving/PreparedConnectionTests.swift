@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

struct PreparedConnectionTests {
    enum Form: CaseIterable { case promise, async, group }

    /// Reads a line, which must be a greeting.
    @Sendable private static func greet(_ connection: Connection) -> Promise<Connection> {
        connection.readLine(limit: 64).map { line in
            if line != "hello" { throw Flaw(1) }
            return connection
        }
    }

    @Test(.group(2), arguments: Form.allCases) func isCalledBeforeTheHandler(form: Form) throws {
        let options = ServeOptions(prepare: Self.greet)
        let errors = Shared<[String]>([])
        let onError = { @Sendable (error: any Error, _: Connection) in
            let text = "\(error)"
            errors.change { $0.append(text) }
        }
        let handler = { @Sendable (connection: Connection) in
            connection.forEachLine { line in connection.write(line + "\n") }
        }
        let served =
            switch form {
            case .promise: listener.serve(options, onError: onError, handler: handler)
            case .group: listener.serve(on: loops, options, onError: onError, handler: handler)
            case .async:
                listener.serveAsync(options, onError: onError) { connection in
                    for try await line in connection.lines { try await connection.write(line + "\n").value }
                }
            }
        let good = try Peer(to: listener.localAddress, sending: "hello\nx\n")
        expectEqual(try hang(elsewhere { try good.receive(upTo: 2) }, timeout: patience), Array("x\n".utf8))
        let bad = try Peer(to: listener.localAddress, sending: "go\nx\n")
        expectEqual(try hang(elsewhere { try bad.readToEnd() }, timeout: patience), [])
        expectEqual(errors.value, ["\(Flaw(1))"])
        try listener.end(served, closing: [good, bad])
    }

    /// A silent client counts, and a drain aborts it.
    @Test(.listener(.virtual)) func countsAsActiveMeanwhile() throws {
        let served = listener.serve(ServeOptions(prepare: Self.greet)) { echo($0) }
        _ = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        listener.drain(deadline: .milliseconds(10))
        _ = try hang(served)
    }
}
