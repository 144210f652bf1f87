extension Thenable where T: Sequence {
    /// Sorts the elements by `areInIncreasingOrder`; equal elements keep their order.
    /// - Parameter areInIncreasingOrder: whether its first argument stands before its second; called in a job of this thread's
    ///   loop.
    /// - Returns: a promise of the sorted elements. Rejected with the error of this promise, or with the error that the
    ///   closure throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func sortedValues(
        _ areInIncreasingOrder: @escaping (T.Element, T.Element) throws -> Bool, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<[T.Element]> { map("sortedValues", { try $0.sorted(by: areInIncreasingOrder) }, file, line) }
}

extension Thenable where T: Sequence, T.Element: Comparable {
    /// Sorts the elements in ascending order; equal elements keep their order.
    /// - Returns: a promise of the sorted elements, rejected with the error of this promise.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func sortedValues(file: StaticString = #fileID, line: UInt = #line) -> Promise<[T.Element]> {
        map("sortedValues", { $0.sorted() }, file, line)
    }
}

extension Guarantee where T: Sequence {
    /// Sorts the elements by `areInIncreasingOrder`; equal elements keep their order.
    /// - Parameter areInIncreasingOrder: whether its first argument stands before its second; called in a job of this thread's
    ///   loop.
    /// - Returns: a guarantee of the sorted elements.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func sortedValues(
        _ areInIncreasingOrder: @escaping (T.Element, T.Element) -> Bool, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Guarantee<[T.Element]> { map("sortedValues", { $0.sorted(by: areInIncreasingOrder) }, file, line) }
}

extension Guarantee where T: Sequence, T.Element: Comparable {
    /// Sorts the elements in ascending order; equal elements keep their order.
    /// - Returns: a guarantee of the sorted elements.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func sortedValues(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<[T.Element]> {
        map("sortedValues", { $0.sorted() }, file, line)
    }
}
