import Promises
import Reactor

/// Handlers on the loops of a group run on several threads.
func objectInGroupHandler(_ listener: Listener, _ group: LoopGroup, _ ledger: Ledger) -> Promise<DrainResult> {
    listener.serve(on: group) { connection in
        ledger.entries.append("joined")  // error: capture of 'ledger' with non-Sendable type 'Ledger'
        for try await line in connection.lines { print(line) }
    }
}
