// Made by .ci/snippets.py from README.md; do not edit.
// swift-format-ignore-file
import Glibc
import Promises
import Reactor

// README.md: Promises
extension Snippets {
    static func readme1() throws {
        func price(of fruit: String) -> Promise<Int> {
            after(.milliseconds(100)).map {                       // stands for a request
                guard fruit != "durian" else { throw PromiseError.badInput("no \(fruit) here") }
                return fruit.count
            }
        }

        let sum = when(fulfilled: price(of: "pear"), price(of: "apple"))
            .map { pear, apple in pear + apple }
            .ensure { print("that is all") }
        print(try hang(sum, timeout: .seconds(1)))                // 9
        _ = sum
    }
}

// README.md: A server
extension Snippets {
    static func readme2() throws {
        func echo(_ connection: Connection) -> Promise<Void> {    // recursion in constant memory
            connection.read().then { outcome -> Promise<Void> in
                guard case .bytes(let bytes) = outcome else { return .value }
                return connection.write(bytes).then { echo(connection) }
            }
        }

        func main() throws {
            let listener = try Listener.bind("127.0.0.1:7000")
            let served = listener.serve(ServeOptions(maxConnections: 1000)) { connection in
                echo(connection)                                  // closed when this has settled
            }
            try hang(served)
        }

        do { try main() } catch {
            print(error)                                          // bind 127.0.0.1:7000: Address already in use (EADDRINUSE)
            exit(1)
        }
    }
}

// README.md: A server
extension Snippets {
    static func readme3() throws {
        let listener = try Listener.bind(["0.0.0.0:7000", "[::]:7000"])
        let options = ServeOptions(maxConnections: 10_000, stopSignals: [SIGTERM, SIGINT], drainTimeout: .seconds(10))
        let served = listener.serve(options) { connection in
            connection.idleTimeout = .seconds(60)
            return connection.forEachChunk { connection.write($0) }
        }
        print(try hang(served))                                   // counts of idle, finished and aborted connections
        _ = listener
        _ = options
        _ = served
    }
}

// README.md: A server
extension Snippets {
    static func readme4() throws {
        let listener = try Listener.bind("127.0.0.1:7000")
        var lines = 0
        listener.serve { connection in
            for try await line in connection.lines {
                lines += 1
                try await connection.write("\(lines) \(line)\n").value
            }
        }.catch { error in print(error) }
        try EventLoop.current.run()
        _ = listener
        _ = lines
    }
}

// README.md: A server
extension Snippets {
    static func readme5() throws {
        func greet(_ address: String) -> Promise<String?> {
            connect(to: address, timeout: .seconds(5)).then { connection in
                connection.write("hello\n")
                    .then { connection.readLine(limit: 1024) }
                    .timeout(.seconds(10))
                    .ensure { connection.close() }
            }
        }
    }
}
