import Reactor

extension Finalizer {
    /// Calls `body` on `dispatcher` when the chain has ended; see `finally`.
    ///
    /// `body` is not called if the dispatcher refuses the job or releases it without running it; that is logged. See
    /// `map(on:)`.
    public func finally(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) { _ = end.map("finally", on: dispatcher, body, file, line) }
}

extension CascadingFinalizer {
    /// Calls `body` on `dispatcher` when the chain so far has ended; see `finally`, and `Finalizer.finally(on:)`.
    @available(*, noasync, message: "no loop sees the end of the chain in an async function; end it with a catch(on:)")
    public func finally(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) { _ = watchEnd({}, file, line).map("finally", on: dispatcher, body, file, line) }
}
