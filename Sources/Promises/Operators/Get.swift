extension Thenable {
    /// Calls `body` with the value and passes the value on. An error that `body` throws rejects the result.
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
    /// Calls `body` with the value and passes the value on.
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
