import Promises
import Reactor
import ReactorIO
import Workload

let steps: [Workload] = [
    Workload("steps-set") { answer(set, "+OK\r\n", $0) { $0.serve() } },
    Workload("steps-get") { answer(get, "$3\r\nxyz\r\n", $0) { $0.serve() } },
    Workload("steps-alone") { answer(set, "+OK\r\n", inPacket: 1, $0) { $0.serve() } },
    Workload("whole-set") { answer(set, "+OK\r\n", $0) { $0.serveWhole() } },
    Workload("whole-get") { answer(get, "$3\r\nxyz\r\n", $0) { $0.serveWhole() } },
]

private let set = "*3\r\n$3\r\nSET\r\n$8\r\nkey:0001\r\n$3\r\nxyz\r\n"
private let get = "*2\r\n$3\r\nGET\r\n$8\r\nkey:0001\r\n"

/// Packets of requests in the redis protocol, each read step by step: a line for each number, and then that number of
/// bytes for each word. Seven reads for SET, five for GET, and an awaited write. Alternatively one read for each
/// request.
func answer(
    _ request: String, _ answer: String, inPacket count: Int = 16, _ n: Int, _ serve: (StepStore) -> Promise<Void>
) {
    let (server, client) = try! Connection.pair()
    let store = StepStore(server)
    store.values["key:0001"] = Array("xyz".utf8)
    let served = serve(store)
    let packet = Array(String(repeating: request, count: count).utf8)
    let answers = Array(String(repeating: answer, count: count).utf8)
    for _ in 0..<n {
        client.write(packet).cauterize()
        let got = try! hang(client.read(exactly: answers.count))
        precondition(got == answers)
    }
    client.close()
    try! hang(served)
    server.close()
}

/// A server written in steps, as a program would.
final class StepStore {
    struct BadRequest: Error {}

    let connection: Connection
    var values: [String: [UInt8]] = [:]
    /// The words of the current request.
    private var words: [[UInt8]] = []

    init(_ connection: Connection) { self.connection = connection }

    /// Answers one request after the other until the peer ends.
    func serve() -> Promise<Void> {
        connection.readLine().then { [self] header -> Promise<Void> in
            guard let header else { return .value }
            words.removeAll(keepingCapacity: true)
            return readWords(try number(header, "*"))
                .then { [self] in connection.write(try answer()) }
                .then { [self] in serve() }
        }
    }

    private func readWords(_ left: Int) -> Promise<Void> {
        if left == 0 { return .value }
        return connection.readLine().then { [self] header in
            guard let header else { throw BadRequest() }
            return connection.read(exactly: try number(header, "$") + 2)
        }.then { [self] word in
            words.append(Array(word.dropLast(2)))
            return readWords(left - 1)
        }
    }

    /// Like `serve`, with one read for each request.
    func serveWhole() -> Promise<Void> {
        connection.readFrame { reader in
            var words: [[UInt8]] = []
            for _ in 0..<(try Self.number(&reader, "*")) {
                let length = try Self.number(&reader, "$")
                words.append([UInt8](try reader.bytes(length)))
                try reader.skip(2)
            }
            return words
        }.then { [self] words -> Promise<Void> in
            guard let words else { return .value }
            self.words = words
            return connection.write(try answer()).then { [self] in serveWhole() }
        }
    }

    private static func number(_ reader: inout ByteReader, _ mark: Unicode.Scalar) throws -> Int {
        guard try reader.byte() == UInt8(ascii: mark) else { throw BadRequest() }
        let number = try reader.decimal(until: 0x0D, as: Int.self)
        try reader.skip(1)
        return number
    }

    /// The number after `mark`.
    private func number(_ line: String, _ mark: Unicode.Scalar) throws -> Int {
        guard line.unicodeScalars.first == mark, let number = Int(line.dropFirst()) else { throw BadRequest() }
        return number
    }

    private func answer() throws -> [UInt8] {
        let name = words.first.map { String(decoding: $0, as: UTF8.self) }
        if name == "SET", words.count == 3 {
            values[String(decoding: words[1], as: UTF8.self)] = words[2]
            return Array("+OK\r\n".utf8)
        }
        guard name == "GET", words.count == 2 else { throw BadRequest() }
        guard let value = values[String(decoding: words[1], as: UTF8.self)] else { return Array("$-1\r\n".utf8) }
        return Array("$\(value.count)\r\n".utf8) + value + [13, 10]
    }
}
