extension Thenable {
    /// Passes the value on if `body` accepts it, and otherwise rejects with `PromiseError.validationFailed`, which shows it.
    /// An error that `body` throws rejects; a rejection passes `body` by.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func validate(
        _ body: @escaping (T) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T> {
        let passOn = { (value: T) throws -> T in
            if try body(value) { return value }
            throw PromiseError.validationFailed(value: PromiseError.shown(value))
        }
        return map("validate", passOn, file, line)
    }
}
