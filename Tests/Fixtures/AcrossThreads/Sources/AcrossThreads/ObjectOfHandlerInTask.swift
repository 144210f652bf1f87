import Promises

/// What a handler of a listener has captured is the listener's, which here is the caller's too.
func objectOfHandlerInTask(_ listener: Listener) {
    let ledger = Ledger()
    listener.serve { connection in
        for try await line in connection.lines { ledger.entries.append(line) }
    }.cauterize()
    Task {  // error: risks causing data races
        ledger.entries.append("task")
    }
}

/// And one that is still used here.
func objectOfHandlerOfOwnListener() throws {
    let listener = try Listener.bind("127.0.0.1:0")
    let ledger = Ledger()
    listener.serve { connection in
        for try await line in connection.lines { ledger.entries.append(line) }
    }.cauterize()
    Task {  // error: risks causing data races
        ledger.entries.append("task")
    }
    listener.close()
}
