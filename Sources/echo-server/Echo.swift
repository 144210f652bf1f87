import Promises
import ReactorIO

/// One connection's echo: sends every byte back until the peer ends its side.
// A class, so its closures capture one reference, without a block of memory, and its end is that of the last of them: an
// `ensure` would take 96 bytes for each connection.
final class Echo {
    private let connection: Connection
    private let worker: Worker

    init(_ connection: Connection, of worker: Worker) {
        self.connection = connection
        self.worker = worker
        worker.echoDidBegin()
    }

    deinit { worker.echoDidEnd() }

    /// A loop written as recursion, in constant memory. Each write completes before the next read, so a client that
    /// sends and never reads is slowed down, and costs one chunk at most.
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
