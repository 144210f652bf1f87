/// Is fulfilled as the first of `thenables` to be fulfilled, and cancels the others, as far as nobody else waits for them.
///
/// ```swift
/// race(fulfilled: mirrors.map { fetch($0) })
/// ```
///
/// If all of them are rejected, so is the result, with `PromiseError.noWinner` and their errors in the order of the list; or
/// with `PromiseError.cancelled`, if that is what all of them mean.
/// An empty list is rejected with `PromiseError.badInput`. Cancelling the result cancels all that nobody else waits for.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<Each: Thenable>(
    fulfilled thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Each.T> {
    guard !thenables.isEmpty else {
        let core = PromiseCore(error: PromiseError.badInput("race(fulfilled:) of an empty list"), origin: nil)
        return Promise(core.traced(root: "race", Promise<Each.T>.self, file, line))
    }
    let result = FanInCore(racing: Each.T.self, .firstFulfilled, thenables.count).wait(for: thenables)
    return Promise(result.traced(root: "race", Promise<Each.T>.self, file, line))
}

/// Is fulfilled as the first of `thenables` to be fulfilled; see the form with an array.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<Each: Thenable>(
    fulfilled thenables: Each..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<Each.T> { race(fulfilled: thenables, file: file, line: line) }

/// Is fulfilled as the first of promises and guarantees of one value type; see the form with an array of one type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func race<T>(
    fulfilled thenables: [any Thenable<T>], file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> { race(fulfilled: promises(of: thenables), file: file, line: line) }

/// Is fulfilled as the first of promises and guarantees of one value type; see the form with an array of one type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func race<T>(
    fulfilled thenables: any Thenable<T>..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> { race(fulfilled: promises(of: thenables), file: file, line: line) }
