import Promises
import ReactorIO

/// A length of one byte, and that many bytes.
struct RecordDecoder: FrameDecoder {
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Int> {
        try .reading(bytes) { reader in try reader.bytes(prefixedBy: UInt8.self, limit: 255).byteCount }
    }
}

@main enum OnlyReactorIO {
    static func main() throws {
        try servesLines()
        try servesRecords()
    }

    private static func servesLines() throws {
        let listener = try Listener.bind("127.0.0.1:0")
        var lines = 0
        let served = listener.serve { connection in
            connection.forEachLine(limit: 1024) { line in
                lines += 1
                return connection.write("\(lines) \(line)\n")
            }
        }
        let answer = connect(to: listener.localAddress).then { client in
            client.write("hello\n").then { client.readLine() }.ensure { client.close() }
        }
        check(try hang(answer, timeout: .seconds(30)) == "1 hello")
        listener.drain(deadline: .seconds(30))
        try hang(served.asVoid())
    }

    private static func servesRecords() throws {
        let (client, server) = try Connection.pair()
        let served = server.forEachFrame(RecordDecoder()) { length, record in
            try record.skip(1)
            let sum = try record.bytes(length).withUnsafeBytes { $0.reduce(0, +) }
            return server.write { output in output.append(sum) }
        }
        let answers = client.read(exactly: 2)
        try hang(client.write([2, 3, 4, 0]).then { client.shutdownWrite() })
        check(try hang(answers) == [7, 0])
        try hang(served)
    }
}

func check(_ condition: Bool) { precondition(condition) }
