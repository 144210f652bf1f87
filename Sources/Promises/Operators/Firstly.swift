/// Runs `body` immediately, so that the first step of a chain reads like the others.
///
/// ```swift
/// firstly { connect(to: address) }
///     .then { connection in connection.write("ping") }
///     .catch { error in print(error) }
/// ```
///
/// - Returns: a promise with the outcome of the promise of `body`. Rejected with the error that `body` throws.
@inlinable
public func firstly<Next: Thenable>(
    _ body: () throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Next.T> {
    do { return try body().asPromise() } catch {
        return Promise(PromiseCore(error: error).traced(root: "firstly", Promise<Next.T>.self, file, line))
    }
}

/// Overload for closures with several statements that return `.value(…)`, or mix promises and guarantees.
@inlinable
@_disfavoredOverload
public func firstly<T>(
    _ body: () throws -> any Thenable<T>, file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> {
    let unwrap = { () throws -> Promise<T> in try body().asPromise() }
    return firstly(unwrap, file: file, line: line)
}

/// Runs `body` immediately; see the overload for promises.
@inlinable
@discardableResult
public func firstly<T>(_ body: () -> Guarantee<T>) -> Guarantee<T> { body() }
