import Promises

/// Whoever awaits a promise twice has the same object twice.
func objectAwaitedTwice() async throws {
    let promise = Promise.value(Ledger())
    let (one, other) = try await (promise.value, promise.value)
    Task {  // error: risks causing data races
        one.entries.append("there")
    }
    other.entries.append("here")
}
