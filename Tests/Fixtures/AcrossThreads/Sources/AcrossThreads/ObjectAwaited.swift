import Promises

/// An async function may be on any thread, so it cannot await what stays on one.
func objectAwaited(_ promise: Promise<Ledger>) async throws -> Ledger {
    try await promise.async()  // error: type 'Ledger' does not conform to the 'Sendable' protocol
}
