// Operators on the elements of a value that is a sequence. If a closure throws, it is not called for the remaining
// elements.

extension Thenable where T: Sequence {
    /// Transforms each element.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a promise of the results, in order. Rejected with the error of this promise, or with the error that
    ///   `body` throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func mapValues<U>(
        _ body: @escaping (T.Element) throws -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map("mapValues", { try $0.map(body) }, file, line) }

    /// Transforms each element into a sequence and concatenates the sequences.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a promise of the elements of all sequences, in order. Rejected with the error of this promise, or
    ///   with the error that `body` throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func flatMapValues<Part: Sequence>(
        _ body: @escaping (T.Element) throws -> Part, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Part.Element]> { map("flatMapValues", { try $0.flatMap(body) }, file, line) }

    /// Transforms each element and omits those for which `body` returns `nil`.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a promise of the results, in order. Rejected with the error of this promise, or with the error that
    ///   `body` throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func compactMapValues<U>(
        _ body: @escaping (T.Element) throws -> U?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map("compactMapValues", { try $0.compactMap(body) }, file, line) }

    /// Keeps the elements for which `body` returns `true`.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a promise of the elements that remain, in order. Rejected with the error of this promise, or with the
    ///   error that `body` throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func filterValues(
        _ body: @escaping (T.Element) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { map("filterValues", { try $0.filter(body) }, file, line) }
}

extension Guarantee where T: Sequence {
    /// Transforms each element.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a guarantee of the results, in order.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func mapValues<U>(
        _ body: @escaping (T.Element) -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[U]> { map("mapValues", { $0.map(body) }, file, line) }

    /// Transforms each element into a sequence and concatenates the sequences.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a guarantee of the elements of all sequences, in order.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func flatMapValues<Part: Sequence>(
        _ body: @escaping (T.Element) -> Part, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[Part.Element]> { map("flatMapValues", { $0.flatMap(body) }, file, line) }

    /// Transforms each element and omits those for which `body` returns `nil`.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a guarantee of the results, in order.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func compactMapValues<U>(
        _ body: @escaping (T.Element) -> U?, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[U]> { map("compactMapValues", { $0.compactMap(body) }, file, line) }

    /// Keeps the elements for which `body` returns `true`.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a guarantee of the elements that remain, in order.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func filterValues(
        _ body: @escaping (T.Element) -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[T.Element]> { map("filterValues", { $0.filter(body) }, file, line) }
}
