extension Thenable where T: Sequence {
    /// The elements in the order of `areInIncreasingOrder`; equal ones as they were. An error that it throws rejects.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func sortedValues(
        _ areInIncreasingOrder: @escaping (T.Element, T.Element) throws -> Bool, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<[T.Element]> { map("sortedValues", { try $0.sorted(by: areInIncreasingOrder) }, file, line) }
}

extension Thenable where T: Sequence, T.Element: Comparable {
    /// The elements, the least first; equal ones as they were.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func sortedValues(file: StaticString = #fileID, line: UInt = #line) -> Promise<[T.Element]> {
        map("sortedValues", { $0.sorted() }, file, line)
    }
}

extension Guarantee where T: Sequence {
    /// The elements in the order of `areInIncreasingOrder`; equal ones as they were.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func sortedValues(
        _ areInIncreasingOrder: @escaping (T.Element, T.Element) -> Bool, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Guarantee<[T.Element]> { map("sortedValues", { $0.sorted(by: areInIncreasingOrder) }, file, line) }
}

extension Guarantee where T: Sequence, T.Element: Comparable {
    /// The elements, the least first; equal ones as they were.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func sortedValues(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<[T.Element]> {
        map("sortedValues", { $0.sorted() }, file, line)
    }
}
