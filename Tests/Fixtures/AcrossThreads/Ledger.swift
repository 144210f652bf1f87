import Promises

/// Belongs to one thread.
final class Ledger {
    var entries: [String] = []

    @concurrent static func found() async -> Ledger { Ledger() }
}

/// Belongs to the main thread.
@MainActor final class Window {
    var title = ""
}

actor Archive {
    var promise: Promise<Int>?

    func take(_ promise: Promise<Ledger>) {}
    func give() -> Promise<Ledger> { .value(Ledger()) }

    private let opened = Promise.value(Ledger())
    func first() async throws -> Ledger { try await opened.value }
}
