extension Thenable where T: Sequence {
    /// Calls `body` with each element of the value, and collects the values of the promises in order.
    ///
    /// ```swift
    /// firstly { fetchIDs() }.thenMap { id in fetchUser(id) }
    /// ```
    ///
    /// Calls `body` for all elements without waiting. After a rejection, the other promises continue. See
    /// `when(fulfilled:)`, and `when(fulfilled:concurrently:)` to limit the number at a time.
    /// - Parameter body: called in a job on this thread's loop. An error that it throws rejects the element, and ends
    ///   the calls.
    /// - Returns: a promise of the values. Rejected with this promise's error, or with the first rejection of an
    ///   element.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func thenMap<Next: Thenable>(
        _ body: @escaping (T.Element) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Next.T]> {
        let each = Then { (elements: T) -> Promise<[Next.T]> in
            var promises: [Promise<Next.T>] = []
            promises.reserveCapacity(elements.underestimatedCount)
            for element in elements {
                do { promises.append(try body(element).asPromise()) } catch {
                    promises.append(Promise(PromiseCore(error: error)))
                    break
                }
            }
            return when(fulfilled: promises, file: file, line: line)
        }
        return derived("thenMap", each, file, line)
    }

    /// Overload for closures with several statements that return `.value(…)`, or mix promises and guarantees.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @_disfavoredOverload
    public func thenMap<U>(
        _ body: @escaping (T.Element) throws -> any Thenable<U>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> {
        let unwrap = { (element: T.Element) throws -> Promise<U> in try body(element).asPromise() }
        return thenMap(unwrap, file: file, line: line)
    }
}
