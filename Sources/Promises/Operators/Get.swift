extension Thenable {
    /// Calls `body` with the value and passes the value on.
    ///
    /// ```swift
    /// fetch(url).get { page in cache[url] = page }.done { page in show(page) }
    /// ```
    ///
    /// - Parameter body: called in a job on this thread's loop.
    /// - Returns: a promise of the value, fulfilled when `body` has returned. Rejected with an error from this promise
    ///   or `body`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func get(
        _ body: @escaping (T) throws -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let passOn = { (value: T) in
            try body(value)
            return value
        }
        return map("get", passOn, file, line)
    }
}

extension Guarantee {
    /// Calls `body` with the value and passes the value on; see `Promise.get`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    @discardableResult
    public func get(
        _ body: @escaping (T) -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T> {
        let passOn = { (value: T) in
            body(value)
            return value
        }
        return map("get", passOn, file, line)
    }
}
