import Promises

/// Sends every byte back until the peer ends its side.
///
/// A loop, written as recursion: it runs in constant memory for as long as the connection lives. Each write completes
/// before the next read, so a client that sends and never reads is slowed down, and costs no more than one chunk.
func echo(_ connection: Connection) -> Promise<Void> {
    connection.read().then { outcome -> Promise<Void> in
        switch outcome {
        // With `_ in`, since the compiler wraps a closure without it in another one, which costs an allocation.
        case .bytes(let bytes): connection.write(bytes).then { _ in echo(connection) }
        case .end: .value
        case .failed(let error): Promise(error: error)
        }
    }
}
