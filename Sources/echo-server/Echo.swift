import Promises
import Reactor

/// The echo of one connection: sends every byte back until the peer ends its side.
///
/// A loop, written as recursion: it runs in constant memory for as long as the connection lives. Each write completes before the
/// next read, so a client that sends and never reads is slowed down, and costs no more than one chunk.
///
/// Its closures capture the connection alone, which takes no block of memory; the count of its loop is found by it.
func echo(_ connection: Connection) -> Promise<Void> {
    connection.read().then { outcome -> Promise<Void> in
        switch outcome {
        case .bytes(let bytes):
            EchoedBytes.ofLoops.value(for: connection).count += bytes.count
            return connection.write(bytes).then { echo(connection) }
        case .end: return .value
        case .failed(let error): return Promise(error: error)
        }
    }
}

/// The bytes that the connections of a loop have received, and that are sent back.
final class EchoedBytes {
    static let ofLoops = LoopLocal { EchoedBytes() }

    // Unchecked: one thread, and nothing is called during an access. Each message makes one.
    @exclusivity(unchecked) var count = 0
}
