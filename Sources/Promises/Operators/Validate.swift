extension Thenable {
    /// Passes the value on if `body` returns `true`.
    /// - Parameter body: called with the value, in a job of this thread's loop. A rejection of this promise skips it.
    /// - Returns: a promise of the value. Rejected with `PromiseError.validationFailed`, which shows the value, if
    ///   `body` returns `false`; otherwise with the error of this promise, or with the error that `body` throws.
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
