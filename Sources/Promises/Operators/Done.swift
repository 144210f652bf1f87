extension Thenable {
    /// Calls `body` with the value: the end of a chain's happy path. What follows has no value; an error that `body`
    /// throws rejects it.
    @inlinable
    public func done(_ body: @escaping (T) throws -> Void) -> Promise<Void> { map(body) }

    /// Calls `body` with the value and passes the value on. An error that `body` throws rejects.
    @inlinable
    public func get(_ body: @escaping (T) throws -> Void) -> Promise<T> {
        map {
            try body($0)
            return $0
        }
    }

    /// Calls `body` with the outcome, whichever it is, and passes it on.
    @inlinable
    public func tap(_ body: @escaping (Result<T, any Error>) -> Void) -> Promise<T> {
        let child = Core(Tap(body))
        asPromise().core.attach(child)
        return Promise(child)
    }
}

extension Guarantee {
    /// Calls `body` with the value. What follows has none.
    @inlinable
    @discardableResult
    public func done(_ body: @escaping (T) -> Void) -> Guarantee<Void> { map(body) }

    /// Calls `body` with the value and passes the value on.
    @inlinable
    @discardableResult
    public func get(_ body: @escaping (T) -> Void) -> Guarantee<T> {
        map {
            body($0)
            return $0
        }
    }

    /// As `get`, in the shape that `Promise.tap` has; the result is a failure only if the guarantee was abandoned.
    @inlinable
    @discardableResult
    public func tap(_ body: @escaping (Result<T, any Error>) -> Void) -> Guarantee<T> {
        let child = Core(Tap(body))
        core.attach(child)
        return Guarantee(child)
    }
}

@usableFromInline
struct Tap<T>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = T
    @usableFromInline let body: (Result<T, any Error>) -> Void

    @inlinable init(_ body: @escaping (Result<T, any Error>) -> Void) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: Core) {
        body(source.result)
        core.finish(as: source)
    }
}
