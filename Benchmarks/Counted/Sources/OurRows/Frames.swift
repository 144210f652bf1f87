import Glibc
import Promises
import Reactor
import ReactorIO
import Workload

let frames: [Workload] = [
    Workload("frame-line", run: readLines), Workload("frame-lent", run: answerLentFrames),
    Workload("frame-read", run: readFrames),
]

private let linesInPacket = 64

/// Packets of 64 lines, each read by `readLine` and a `then`: all but the first of a packet are buffered.
func readLines(_ n: Int) {
    let (server, client) = try! Connection.pair()
    var left = 0
    var done = Promise<Void>.value
    func next() -> Promise<Void> {
        server.readLine().then { _ -> Promise<Void> in
            left -= 1
            return left == 0 ? .value : next()
        }
    }
    let packet = Array(String(repeating: "GET key\r\n", count: linesInPacket).utf8)
    for _ in 0..<n {
        left = linesInPacket
        done = next()
        client.write(packet).cauterize()
        try! hang(done)
    }
    server.abort()
    client.abort()
}

/// A request: a word and a text, up to the end of a line.
private struct RequestDecoder: FrameDecoder {
    func decode(_ bytes: RawSpan) throws -> DecodedFrame<Void> { try .reading(bytes) { _ = try $0.line() } }
}

/// Packets of 64 requests, each lent and answered in place. The 64 answers are sent together.
func answerLentFrames(_ n: Int) {
    let (server, client) = try! Connection.pair()
    let peer = try! client.detach()
    var left = 0
    let served = server.forEachFrame(RequestDecoder()) { _, request in
        try request.skip(4)
        let key = request.rest()
        left -= 1
        return server.write { output in
            output.append(UInt8(ascii: "$"))
            output.append(decimal: key.byteCount)
            output.append(key)
        }
    }
    let packet = Array(String(repeating: "GET key\r\n", count: linesInPacket).utf8)
    var taken = [UInt8](repeating: 0, count: 4096)
    for _ in 0..<n {
        left = linesInPacket
        _ = write(peer, packet, packet.count)
        while left > 0 { hang(after(.zero)) }
        _ = read(peer, &taken, taken.count)
    }
    served.cancel()
    server.abort()
    close(peer)
}

/// Packets of 64 requests of two parts, each read by one call: all but the first of a packet are buffered.
func readFrames(_ n: Int) {
    let (server, client) = try! Connection.pair()
    var left = 0
    func next() -> Promise<Void> {
        server.readFrame { reader in
            try reader.skip(4)
            return try reader.decimal(until: 0x0A, as: Int.self)
        }.then { _ -> Promise<Void> in
            left -= 1
            return left == 0 ? .value : next()
        }
    }
    let packet = Array(String(repeating: "GET 1234\n", count: linesInPacket).utf8)
    for _ in 0..<n {
        left = linesInPacket
        let done = next()
        client.write(packet).cauterize()
        try! hang(done)
    }
    server.abort()
    client.abort()
}
