extension Thenable {
    /// Transforms the value into a non-nil result.
    ///
    /// ```swift
    /// connection.readLine().compactMap { line in line.flatMap { Int($0) } }
    /// ```
    ///
    /// - Parameter body: called with the value, in a job on this thread's loop.
    /// - Returns: a promise of the result. If `body` returns `nil`, rejected with `PromiseError.compactMap`, which
    ///   shows the value. Also rejected with an error from this promise or `body`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func compactMap<U>(
        _ body: @escaping (T) throws -> U?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        let unwrap = { (value: T) throws -> U in
            if let result = try body(value) { return result }
            throw PromiseError.compactMap(value: PromiseError.shown(value), type: "\(U.self)")
        }
        return map("compactMap", unwrap, file, line)
    }
}
