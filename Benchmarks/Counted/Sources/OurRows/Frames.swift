import Promises
import Reactor
import Workload

let frames: [Workload] = [
    Workload("frame-line", run: readLines)
]

private let linesInPacket = 64

/// Packets of 64 lines, each of which is read by `readLine` and a `then`: all but the first of a packet are at hand.
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
