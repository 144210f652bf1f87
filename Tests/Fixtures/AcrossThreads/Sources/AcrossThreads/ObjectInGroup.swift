import Promises

/// What is handed to a task group runs beside it.
func objectInGroup(_ ledger: Ledger) async {
    await withTaskGroup(of: Void.self) { group in
        group.addTask {  // error: risks causing data races
            _ = Promise.value(ledger)
        }
    }
}
