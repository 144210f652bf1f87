/// Runs `body` at once, so that a chain's first step reads like the others; what it throws becomes a rejection.
@inlinable
public func firstly<Next: Thenable>(
    _ body: () throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Next.T> {
    do { return try body().asPromise() } catch {
        return Promise(PromiseCore(error: error, origin: nil).traced(root: "firstly", Promise<Next.T>.self, file, line))
    }
}

/// Runs `body` at once, so that a chain's first step reads like the others.
@inlinable
@discardableResult
public func firstly<T>(_ body: () -> Guarantee<T>) -> Guarantee<T> { body() }
