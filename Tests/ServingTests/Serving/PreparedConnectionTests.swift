@testable import PromisesTestSupport

struct PreparedConnectionTests {
    /// Reads a line, which must be a greeting.
    @Sendable private static func greet(_ connection: Connection) -> Promise<Connection> {
        connection.readLine(limit: 64).map { line in
            if line != "hello" { throw Flaw(1) }
            return connection
        }
    }

    private static var options: ServeOptions { ServeOptions(maxConnections: 2, prepare: greet) }

    private func expectService(_ listener: Listener, _ served: Promise<DrainResult>, _ errors: () -> [String]) throws {
        let good = try Peer(to: listener.localAddress, sending: "hello\nx\n")
        expectEqual(try hang(elsewhere { try good.receive(upTo: 2) }, timeout: patience), Array("x\n".utf8))
        let bad = try Peer(to: listener.localAddress, sending: "go\nx\n")
        expectEqual(try hang(elsewhere { try bad.readToEnd() }, timeout: patience), [])
        expectEqual(errors(), ["\(Flaw(1))"])
        for client in [good, bad] { client.close() }
        try listener.end(served)
    }

    @Test(.listener, arguments: [false, true]) func isCalledBeforeTheHandler(isAsync: Bool) throws {
        var errors: [String] = []
        let onError = { (error: any Error, _: Connection) in errors.append("\(error)") }
        let served =
            isAsync
            ? listener.serveAsync(Self.options, onError: onError) { connection in
                for try await line in connection.lines { try await connection.write(line + "\n").value }
            }
            : listener.serve(Self.options, onError: onError) { connection in
                connection.forEachLine { line in connection.write(line + "\n") }
            }
        try expectService(listener, served) { errors }
    }

    @Test(.group(2)) func isCalledOnTheLoopsOfAGroup() throws {
        let errors = Shared<[String]>([])
        let served = listener.serve(
            on: loops, Self.options, onError: { error, _ in errors.change { $0.append("\(error)") } }
        ) { connection in connection.forEachLine { line in connection.write(line + "\n") } }
        try expectService(listener, served) { errors.value }
    }

    /// A silent client counts, and a drain aborts it.
    @Test(.listener(.virtual)) func countsAsActiveMeanwhile() throws {
        let served = listener.serve(Self.options) { connection in connection.forEachChunk { connection.write($0) } }
        _ = try Peer(to: listener.localAddress)
        try net.loop.run(until: { listener.activeConnections == 1 })
        listener.drain(deadline: .milliseconds(10))
        _ = try hang(served)
    }
}
