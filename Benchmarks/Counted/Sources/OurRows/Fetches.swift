import Promises
import Reactor
import ReactorHTTP
import ReactorIO
import Workload

let fetches: [Workload] = [Workload("fetch", run: fetch)]

/// A GET on a kept connection, and its body, from a server on the same loop that answers any request.
func fetch(_ n: Int) {
    let listener = try! Listener.bind("127.0.0.1:0")
    let answer = Array("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nHello, world!\n".utf8)
    listener.serve { connection in connection.forEachChunk { _ in connection.write(answer) } }
    var options = HTTPClient.Options()
    options.proxies = Proxies()
    let client = HTTPClient(options)
    let address = "http://\(listener.localAddress)/"
    for _ in 0..<n {
        let body = try! hang(client.fetch(address).then { $0.body.bytes() })
        precondition(body.count == 14)
    }
    client.close()
    listener.close()
}
