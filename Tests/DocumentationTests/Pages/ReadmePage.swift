// Made by .ci/snippets.py from README.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// README.md: swift-reactor
extension Snippets {
    static func readme1() throws {
        func main() throws {
            let listener = try Listener.bind("127.0.0.1:7000")
            var lines = 0                                         // shared by all connections, without a lock
            let served = listener.serve(.untilStopped) { connection in
                connection.forEachLine(limit: 1024) { line in
                    lines += 1
                    return connection.write("\(lines) \(line)\n")
                }
            }
            try hang(served)                                      // until Control-C or SIGTERM, and the last answer has left
        }

        try main()
    }
}

// README.md: Promises
extension Snippets {
    static func readme2() throws {
        func price(of fruit: String) -> Promise<Int> {
            after(.milliseconds(100)).map {                       // stands for a request
                guard fruit != "durian" else { throw PromiseError.badInput("no \(fruit) here") }
                return fruit.count
            }
        }

        let sum = when(fulfilled: price(of: "pear"), price(of: "apple"))
            .map { pear, apple in pear + apple }
            .timeout(.seconds(1))
        let total = try hang(sum)
        assert(total == 9)
        _ = sum
        _ = total
    }
}

// README.md: A server
extension Snippets {
    static func readme3() throws {
        func echo(_ connection: Connection) -> Promise<Void> {    // recursion in constant memory
            connection.read().then { outcome -> Promise<Void> in
                guard case .bytes(let bytes) = outcome else { return .value }
                return connection.write(bytes).then { echo(connection) }
            }
        }

        func main() throws {
            let listener = try Listener.bind("127.0.0.1:7000")
            let options = ServeOptions(maxConnections: 1000, stopSignals: [SIGTERM, SIGINT])
            let result = try hang(listener.serve(options) { connection in echo(connection) })
            print("aborted: \(result.aborted)")
        }

        do { try main() } catch {
            print(error)                                          // bind 127.0.0.1:7000: Address already in use (EADDRINUSE)
            exit(1)
        }
    }
}
