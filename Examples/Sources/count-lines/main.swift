import Glibc
import Promises
import ReactorIO

func main() throws {
    let listener = try Listener.bind("127.0.0.1:7000")
    var lines = 0  // shared by all connections, without a lock
    let served = listener.serve(.untilStopped) { connection in
        connection.forEachLine(limit: 1024) { line in
            lines += 1
            return connection.write("\(lines) \(line)\n")
        }
    }
    try hang(served)  // returns after Control-C or SIGTERM, once the last answer is sent
}

do { try main() } catch {
    print(error)  // bind 127.0.0.1:7000: Address already in use (EADDRINUSE)
    exit(1)
}
