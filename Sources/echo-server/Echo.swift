import Promises
import ReactorIO

/// One connection's echo: sends every byte back until the peer ends its side.
// A class, so its closures capture one reference without allocating memory, and `deinit` follows the last closure. An
// `ensure` would take 96 bytes per connection.
final class Echo {
    private let connection: Connection
    private let worker: Worker

    init(_ connection: Connection, of worker: Worker) {
        self.connection = connection
        self.worker = worker
        worker.echoDidBegin()
    }

    deinit { worker.echoDidEnd() }

    /// Echoes in a recursion that runs as a loop, in constant memory. Each write completes before the next read, so a
    /// client that sends and never reads is slowed down, and costs at most one chunk.
    func run() -> Promise<Void> {
        connection.read().then { [self] outcome -> Promise<Void> in
            switch outcome {
            case .bytes(let bytes):
                worker.statistics.bytes += bytes.count
                return connection.write(bytes).then { [self] in run() }
            case .end: return .value
            case .failed(let error): return Promise(error: error)
            }
        }
    }
}
