import Promises

/// The echo of one connection: sends every byte back until the peer ends its side.
///
/// One object is all that the server has of a connection: what waits for the connection has it, and so releases it when the
/// echo ends, in whatever way.
final class EchoSession {
    private let connection: Connection
    private let worker: Worker

    init(_ connection: Connection, _ worker: Worker) {
        self.connection = connection
        self.worker = worker
        worker.begin()
    }

    deinit { worker.end() }

    /// A loop, written as recursion: it runs in constant memory for as long as the connection lives. Each write completes
    /// before the next read, so a client that sends and never reads is slowed down, and costs no more than one chunk.
    func echo() -> Promise<Void> {
        // The closures capture one object and no more: then they are no blocks of memory of their own.
        connection.read().then { [self] outcome -> Promise<Void> in
            switch outcome {
            case .bytes(let bytes):
                worker.count(bytes.count)
                // With `_ in`, since the compiler wraps a closure without it in another one, which costs an allocation.
                return connection.write(bytes).then { [self] _ in echo() }
            case .end: return .value
            case .failed(let error): return Promise(error: error)
            }
        }
    }
}
