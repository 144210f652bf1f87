import Promises

/// The echo of one connection: sends every byte back until the peer ends its side.
///
/// It exists for the closures, each of which captures it alone: one that captures a single object is no block of memory of its
/// own.
final class EchoSession {
    private let connection: Connection
    private let worker: Worker

    init(_ connection: Connection, _ worker: Worker) {
        self.connection = connection
        self.worker = worker
    }

    /// A loop, written as recursion: it runs in constant memory for as long as the connection lives. Each write completes
    /// before the next read, so a client that sends and never reads is slowed down, and costs no more than one chunk.
    func echo() -> Promise<Void> {
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
