import Glibc
import Promises
import Reactor
import ReactorIO
import Workload

let posts: [Workload] = [
    Workload("post", run: postMessages)
]

/// Turns that each post twenty messages of 74 bytes to a peer, which reads them between turns.
func postMessages(_ n: Int) {
    let (server, client) = try! Connection.pair()
    let peer = try! client.detach()
    let message = [UInt8](repeating: 0x2e, count: 74)
    var taken = [UInt8](repeating: 0, count: 4096)
    for _ in 0..<n {
        hang(after(.zero).done { for _ in 0..<20 { server.post(message, overflow: .drop) } })
        _ = read(peer, &taken, taken.count)
    }
    server.abort()
    close(peer)
}
