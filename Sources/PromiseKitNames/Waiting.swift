import Promises
import Reactor

/// `after(.seconds(seconds))`. Infinity and the like mean 200 years; NaN and negative values mean zero.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
public func after(seconds: Double, file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
    after(.seconds(seconds > 0 ? min(seconds, 6.3e9) : 0), file: file, line: line)
}

extension Thenable {
    /// `hang(promise)`
    @available(*, noasync, message: "an async function must not block its thread; write try await promise.value")
    @discardableResult
    public func wait(_ file: StaticString = #fileID, _ line: UInt = #line) throws -> T {
        try hang(asPromise(), timeout: nil, file, line)
    }
}

extension Guarantee {
    /// `hang(guarantee)`
    @available(*, noasync, message: "an async function must not block its thread; write await guarantee.value")
    @discardableResult
    public func wait(_ file: StaticString = #fileID, _ line: UInt = #line) -> T { hang(self, file, line) }

    /// `await guarantee.value`
    public nonisolated(nonsending) func async() async -> T { await value }
}

extension Promise {
    /// `try await promise.value`
    public nonisolated(nonsending) func async() async throws -> T { try await value }
}
