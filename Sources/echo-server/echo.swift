import Promises

/// Sends every byte back until the peer ends its side.
///
/// A loop, written as recursion: it runs in constant memory for as long as the connection lives. Each write completes
/// before the next read, so a client that sends and never reads is slowed down, and costs no more than one chunk.
func echo(_ connection: Connection) -> Promise<Void> {
    connection.read().then { outcome -> Promise<Void> in
        switch outcome {
        case .bytes(let bytes): connection.write(bytes).then { echo(connection) }
        case .end: .value
        case .failed(let error): Promise(error: error)
        }
    }
}
