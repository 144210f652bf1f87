import Promises
import Reactor

/// A connection belongs to the loop of its handler, and so does what the handler shares with others of the loop.
func connectionOfHandlerInTask(_ listener: Listener) -> Promise<DrainResult> {
    listener.serve { connection in
        Task {  // error: risks causing data races
            try await connection.write("there").value
        }
        try await connection.write("here").value
    }
}

func valueOfLoopInTask(_ listener: Listener, _ group: LoopGroup, _ ledgers: LoopLocal<Ledger>) -> Promise<DrainResult> {
    listener.serve(on: group) { connection in
        let ledger = ledgers.value(for: connection)
        Task.detached {  // error: risks causing data races
            ledger.entries.append("there")
        }
        for try await line in connection.lines { ledger.entries.append(line) }
    }
}

func valueOfLoopInTaskOfPromiseHandler(_ listener: Listener, _ group: LoopGroup, _ ledgers: LoopLocal<Ledger>) {
    listener.serve(on: group) { connection in
        let ledger = ledgers.value(for: connection)
        Task {  // error: risks causing data races
            ledger.entries.append("there")
        }
        return connection.write(ledger.entries.last ?? "nothing")
    }.cauterize()
}

/// Two child tasks.
func objectInChildTask(_ listener: Listener) -> Promise<DrainResult> {
    listener.serve { connection in
        let ledger = Ledger()
        async let entry: Void = { ledger.entries.append("there") }()  // error: data races
        ledger.entries.append("here")
        await entry
        connection.close()
    }
}
