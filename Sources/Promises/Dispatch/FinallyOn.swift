import Reactor

extension Finalizer {
    /// Calls `body` on `dispatcher` when the chain has ended; see `finally`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called once, unless the dispatcher refuses the job or releases it without running it; that is logged.
    ///     See `map(on:)`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    public func finally(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) { _ = end.map("finally", on: dispatcher, body, file, line) }
}

extension CascadingFinalizer {
    /// Calls `body` on `dispatcher` when the chain so far has ended; see `finally`, and `Finalizer.finally(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called once.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    @available(*, noasync, message: "no loop sees the end of the chain in an async function; end it with a catch(on:)")
    public func finally(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable () -> Void, file: StaticString = #fileID,
        line: UInt = #line
    ) { _ = watchEnd({}, file, line).map("finally", on: dispatcher, body, file, line) }
}
