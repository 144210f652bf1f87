import Promises
import Reactor

/// What an async body has captured is the loop's, which here is the caller's too.
func objectOfBodyInTask(_ loop: EventLoop) {
    let ledger = Ledger()
    Promise(on: loop) { ledger.entries.append("loop") }.cauterize()
    Task {  // error: risks causing data races
        ledger.entries.append("task")
    }
}

/// A pool belongs to its loop, and what it has with it.
func resourceInTask(_ pool: Pool<Ledger>) async throws {
    try await pool.with { ledger in
        ledger.entries.append("loop")
        Task {  // error: risks causing data races
            ledger.entries.append("task")
        }
    }
}
