extension Thenable {
    /// Passes the value on if `body` returns `true`; otherwise rejects with `PromiseError.validationFailed`, which
    /// shows the value.
    ///
    /// An error that `body` throws rejects the result. A rejection of this promise skips `body`.
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
