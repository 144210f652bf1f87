// Made by .ci/snippets.py from docs/start/first-service.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor
import Testing

// docs/start/first-service.md: The service
/// Writes a line to standard error, which systemd stores. `print` would keep its lines in a buffer when nobody watches.
public func logLine(_ text: String) {
    let line = Array("\(text)\n".utf8)
    _ = Glibc.write(STDERR_FILENO, line, line.count)
}

/// A server of records, with its figures at a second address.
public final class RecordService {
    public let records: Listener
    public let metrics: Listener
    private var failed = 0

    public init(records: String, metrics: String) throws {
        // A socket that systemd has opened for this process, or else one of its own.
        self.records = try Listener.inherited() ?? Listener.bind(records)
        self.metrics = try Listener.bind(metrics)
    }

    /// Begins to serve. An error of one client is counted, not logged: clients could fill the disk with such lines.
    public func begin() {
        let store = RecordStore()
        let options = ServeOptions(maxConnections: 1000, memoryLimit: 256 << 20)
        records.serve(options, onError: { _, _ in self.failed += 1 }) { store.serve($0) }
        metrics.serve(ServeOptions(maxConnections: 8)) { self.answerScrape($0).timeout(.seconds(5)) }
    }

    /// Waits for SIGTERM or SIGINT, and drains both listeners.
    public func untilStopped() -> Promise<DrainResult> {
        Listener.drain([records, metrics], atFirstOf: [SIGTERM, SIGINT], deadline: .seconds(10)) { signal in
            logLine("signal \(signal): draining \(self.records.activeConnections) connections")
            _ = try? ServiceManager.notify(.stopping)
        }
    }

    /// One request over HTTP, whatever it asks for.
    private func answerScrape(_ connection: Connection) -> Promise<Void> {
        connection.read(until: "\r\n\r\n", limit: 8192).then { _ in
            let body = self.figures
            return connection.write(
                """
                HTTP/1.1 200 OK\r
                Content-Type: text/plain; version=0.0.4\r
                Content-Length: \(body.utf8.count)\r
                Connection: close\r
                \r
                \(body)
                """)
        }
    }

    private var figures: String {
        """
        records_connections \(records.activeConnections)
        records_failed_connections_total \(failed)

        """ + EventLoop.current.metrics.prometheusText()
    }
}

// docs/start/first-service.md: The program
extension Snippets {
    static func firstService2() throws {
        func setting(_ name: String, or value: String) -> String { getenv(name).map { String(cString: $0) } ?? value }

        func main() throws -> CInt {
            conf.logHandler = { event in logLine("warning: \(event)") }
            let loop = EventLoop.current
            loop.measured = .turns
            loop.slowHandlerThreshold = .milliseconds(50)

            let service = try RecordService(
                records: setting("RECORDS", or: "127.0.0.1:7000"), metrics: setting("METRICS", or: "127.0.0.1:7001"))
            service.begin()
            logLine("listening on \(service.records.localAddress), figures on \(service.metrics.localAddress)")

            try ServiceManager.notify(.ready)
            if let interval = ServiceManager.watchdogInterval {
                loop.schedule(every: interval / 2) { _ = try? ServiceManager.notify(.watchdog) }.unref()
            }

            let result = try hang(service.untilStopped())
            logLine("ended: idle \(result.idle), finished \(result.finished), aborted \(result.aborted)")
            return result.aborted == 0 ? 0 : 1
        }

        do { exit(try main()) } catch {
            logLine("failed: \(error)")
            exit(71)                                              // EX_OSERR of sysexits.h: the system refused something
        }
    }
}

// docs/start/first-service.md: The test
@Suite struct RecordServiceTests {
    @Test func theFiguresCountAClientThatBreaksTheProtocol() throws {
        try withVirtualTime {
            let service = try RecordService(records: "127.0.0.1:0", metrics: "127.0.0.1:0")
            service.begin()
            let client = try hang(connect(to: service.records.localAddress), timeout: .seconds(10))
            let answer = try hang(client.write([0xFF, 0xFF]).then { client.receive() }, timeout: .seconds(10))
            #expect(answer.isEmpty)                                  // the server has ended the connection
            let text = try hang(scrape(service.metrics.localAddress), timeout: .seconds(10))
            #expect(text.contains("records_failed_connections_total 1\n"))
            client.close()
            service.records.close()
            service.metrics.close()
            try EventLoop.current.run()                              // until nothing is left
        }
    }

    private func scrape(_ address: SocketAddress) -> Promise<String> {
        connect(to: address).then { client in
            client.write("GET /metrics HTTP/1.1\r\n\r\n")
                .then { client.read(until: "\r\n\r\n", limit: 1024) }
                .then { _ in client.receive() }
                .map { String(decoding: $0, as: UTF8.self) }
                .ensure { client.close() }
        }
    }
}
