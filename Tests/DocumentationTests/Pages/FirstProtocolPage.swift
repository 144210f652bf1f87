// Made by .ci/snippets.py from docs/start/first-protocol.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor
import Testing

// docs/start/first-protocol.md: The protocol
/// Reads a text of the protocol: a length of two bytes, the higher one first, and as many bytes, at most 1,024.
public func readText(_ reader: inout ByteReader) throws -> String {
    try String(utf8: reader.bytes(prefixedBy: UInt16.self, limit: 1024))
}

/// Appends a text of the protocol.
public func append(_ text: String, to output: inout ByteWriter) throws {
    try output.append(prefixedBy: UInt16.self) { $0.append(text) }
}

/// Finds where a text ends in the bytes that have arrived.
struct TextDecoder: FrameDecoder {
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> {
        try .reading(bytes) { reader in _ = try reader.bytes(prefixedBy: UInt16.self, limit: 1024) }
    }
}

/// Values by name. All connections of a loop run on one thread, so this class needs no lock.
public final class RecordStore {
    private var values: [String: String] = [:]

    public init() {}

    /// Serves one client, request by request.
    public func serve(_ connection: Connection) -> Promise<Void> {
        connection.idleTimeout = .seconds(60)
        return connection.forEachFrame(lending: TextDecoder()) { _, bytes in
            let request = try readText(&bytes)
            return self.answer(request).then { answer in
                try connection.write { output in try append(answer, to: &output) }
            }
        }
    }

    /// `SET name value`, `GET name`, and `SLOW name`, which stands for a request that takes two seconds.
    private func answer(_ request: String) -> Promise<String> {
        let words = request.split(separator: " ", maxSplits: 2).map(String.init)
        switch words.first {
        case "SET" where words.count == 3:
            values[words[1]] = words[2]
            return .value("OK")
        case "GET" where words.count == 2:
            return .value(values[words[1]] ?? "NONE")
        case "SLOW" where words.count == 2:
            return after(.seconds(2)).map { self.values[words[1]] ?? "NONE" }
        default:
            return .value("ERROR")
        }
    }
}

// docs/start/first-protocol.md: The program
extension Snippets {
    static func firstProtocol2() throws {
        func main() throws {
            let store = RecordStore()
            let listener = try Listener.bind("127.0.0.1:7000")
            print("listening on \(listener.localAddress)")
            let options = ServeOptions(maxConnections: 1000, stopSignals: [SIGTERM, SIGINT], drainTimeout: .seconds(3))
            let served = listener.serve(options) { connection in store.serve(connection) }
            let result = try hang(served)
            print("idle: \(result.idle), finished: \(result.finished), aborted: \(result.aborted)")
        }

        do { try main() } catch {
            print("failed: \(error)")
            exit(1)
        }
    }
}

// docs/start/first-protocol.md: The tests
@Suite struct RecordStoreTests {
    @Test func requestsOfOnePacketAreAnsweredInOrder() throws {
        try withVirtualTime {
            let (server, client) = try Connection.pair()
            let served = RecordStore().serve(server)
            let sent = try client.write { output in
                try append("SET fruit pear", to: &output)
                try append("GET fruit", to: &output)
            }
            try hang(sent.then { client.shutdownWrite() })
            for expected in ["OK", "pear"] {
                let answer = try hang(client.readFrame { try readText(&$0) }, timeout: .seconds(2))
                #expect(answer == expected)
            }
            try hang(served, timeout: .seconds(2))
        }
    }

    @Test func aFrameBeyondTheLimitEndsTheConnection() throws {
        try withVirtualTime {
            let (server, client) = try Connection.pair()
            let served = RecordStore().serve(server)
            try hang(client.write([0xFF, 0xFF]))
            #expect(throws: StreamError.self) { try hang(served, timeout: .seconds(2)) }
            client.close()
        }
    }

    @Test func aDrainLetsARequestFinish() throws {
        try withVirtualTime { clock in
            let store = RecordStore()
            let listener = try Listener.bind("127.0.0.1:0")
            let served = listener.serve { connection in store.serve(connection) }
            let client = try hang(connect(to: listener.localAddress))
            // The first answer proves that the server has accepted the connection.
            _ = try hang(client.write { try append("GET fruit", to: &$0) }.then { client.readFrame { try readText(&$0) } })

            try hang(client.write { try append("SLOW fruit", to: &$0) })
            let answer = client.readFrame { try readText(&$0) }
            let drained = listener.drain(deadline: .seconds(10))
            let text = try hang(answer)
            #expect(text == "NONE")
            #expect(clock.now.nanoseconds == 2_000_000_000)
            client.close()
            let result = hang(drained)
            #expect(result.aborted == 0)
            try hang(served)
        }
    }
}
