// Made by .ci/snippets.py from docs/start/first-protocol.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor
import Testing

// docs/start/first-protocol.md: The protocol
/// A frame of the protocol: a length of two bytes, the higher one first, and as many bytes of text.
public func frame(_ text: String) -> [UInt8] {
    let count = UInt16(text.utf8.count)
    return [UInt8(count >> 8), UInt8(count & 0xFF)] + text.utf8
}

/// Finds the frames in what has arrived. A frame of more than 1,024 bytes is an error.
public let frameDecoder = LengthPrefixDecoder<UInt16>(limit: 1024)

/// Values by name. All connections of a loop run on one thread, so this class needs no lock.
public final class RecordStore {
    private var values: [String: String] = [:]

    public init() {}

    /// Serves one client, request by request.
    public func serve(_ connection: Connection) -> Promise<Void> {
        connection.idleTimeout = .seconds(60)
        return connection.forEachFrame(frameDecoder) { request in
            self.answer(String(decoding: request, as: UTF8.self)).then { connection.write(frame($0)) }
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
            let served = listener.serve(ServeOptions(maxConnections: 1000, stopSignals: [SIGTERM, SIGINT])) { connection in
                store.serve(connection)
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

// docs/start/first-protocol.md: The tests
@Suite struct RecordStoreTests {
    @Test func requestsOfOnePacketAreAnsweredInOrder() throws {
        try withVirtualTime {
            let (server, client) = try Connection.pair()
            let served = RecordStore().serve(server)
            let expected = frame("OK") + frame("pear")
            let answers = client.read(exactly: expected.count)
            try hang(client.write(frame("SET fruit pear") + frame("GET fruit")).then { client.shutdownWrite() })
            let bytes = try hang(answers, timeout: .seconds(2))
            #expect(bytes == expected)
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
            _ = try hang(client.write(frame("GET fruit")).then { client.readFrame(frameDecoder) })

            try hang(client.write(frame("SLOW fruit")))
            let answer = client.readFrame(frameDecoder)
            let drained = listener.drain(deadline: .seconds(10))
            let bytes = try hang(answer)
            #expect(bytes == Array("NONE".utf8))
            #expect(clock.now.nanoseconds == 2_000_000_000)
            client.close()
            let result = hang(drained)
            #expect(result.aborted == 0)
            try hang(served)
        }
    }
}
