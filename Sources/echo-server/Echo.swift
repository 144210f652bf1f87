import Promises
import ReactorIO

/// The echo of one connection: sends every byte back until the peer ends its side.
// A class, so that its closures capture one reference, which takes no block of memory.
final class Echo {
    private let connection: Connection
    private let worker: Worker

    init(_ connection: Connection, of worker: Worker) {
        self.connection = connection
        self.worker = worker
    }

    /// A loop, written as recursion: it runs in constant memory for as long as the connection lives. Each write
    /// completes before the next read, so a client that sends and never reads is slowed down, and costs no more than
    /// one chunk.
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
