import Promises

/// What the caller of a function has too cannot go into a task, whatever handlers of the function's have captured.
func cartOfParameter(_ promise: Promise<String>, _ ledger: Ledger) {
    promise.done { ledger.entries.append($0) }.cauterize()
    Task {  // error: risks causing data races
        ledger.entries.append("task")
    }
}

/// A handler that names an actor's state binds what else it captures to the actor.
actor Desk {
    var count = 0

    func serve(_ promise: Promise<String>) {
        let ledger = Ledger()
        promise.done {
            self.count += 1
            ledger.entries.append($0)  // error: sending 'ledger' risks causing data races
        }.cauterize()
        Task.detached {
            ledger.entries.append("task")
        }
    }
}
