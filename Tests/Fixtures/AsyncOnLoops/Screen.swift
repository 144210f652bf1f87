import Promises
import Reactor

/// Belongs to the main actor, whose thread drives the main loop: handlers and methods share it.
@MainActor final class Screen {
    private(set) var lines: [String] = []

    func show(_ line: String) { lines.append(line) }

    /// Synchronous, so handlers may be attached; they run on the main thread.
    func showLater(_ line: String) -> Promise<Void> {
        after(.milliseconds(1)).asPromise().done { MainActor.assumeIsolated { self.show(line) } }
    }

    func refresh() async throws {
        show("begin")
        try await showLater("later").value
        show("end")
    }
}
