/// Runs `body` immediately, so that the first step of a chain reads like the others.
///
/// ```swift
/// firstly { connect(to: address) }
///     .then { connection in connection.write("ping") }
///     .catch { error in print(error) }
/// ```
///
/// If `body` throws, the returned promise is rejected with that error.
@inlinable
public func firstly<Next: Thenable>(
    _ body: () throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Next.T> {
    do { return try body().asPromise() } catch {
        return Promise(PromiseCore(error: error, origin: nil).traced(root: "firstly", Promise<Next.T>.self, file, line))
    }
}

/// The form for closures of several statements, of which one may be `return .value(…)`.
@inlinable
@_disfavoredOverload
public func firstly<T>(
    _ body: () throws -> Promise<T>, file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> {
    do { return try body() } catch {
        return Promise(PromiseCore(error: error, origin: nil).traced(root: "firstly", Promise<T>.self, file, line))
    }
}

/// Runs `body` immediately and returns its guarantee, so that the first step of a chain reads like the others.
@inlinable
@discardableResult
public func firstly<T>(_ body: () -> Guarantee<T>) -> Guarantee<T> { body() }
