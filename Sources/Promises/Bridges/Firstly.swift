/// Runs `body` at once, so that a chain's first step reads like the others; what it throws becomes a rejection.
@inlinable
public func firstly<Next: Thenable>(_ body: () throws -> Next) -> Promise<Next.T> {
    do { return try body().asPromise() } catch { return Promise(Core(error: error, origin: nil)) }
}

/// Runs `body` at once, so that a chain's first step reads like the others.
@inlinable
@discardableResult
public func firstly<T>(_ body: () -> Guarantee<T>) -> Guarantee<T> { body() }
