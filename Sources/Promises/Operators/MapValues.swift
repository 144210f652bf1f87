// Operators on the elements of a value that is a sequence. Where a closure throws, the rest is not looked at.

extension Thenable where T: Sequence {
    /// The elements, transformed. An error that `body` throws rejects.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func mapValues<U>(
        _ body: @escaping (T.Element) throws -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map("mapValues", { try $0.map(body) }, file, line) }

    /// The elements of what `body` gives for the elements, in one array. An error that it throws rejects.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func flatMapValues<Part: Sequence>(
        _ body: @escaping (T.Element) throws -> Part, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Part.Element]> { map("flatMapValues", { try $0.flatMap(body) }, file, line) }

    /// The elements, transformed, without those for which `body` gives nil. An error that it throws rejects.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func compactMapValues<U>(
        _ body: @escaping (T.Element) throws -> U?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map("compactMapValues", { try $0.compactMap(body) }, file, line) }

    /// The elements that `body` accepts. An error that it throws rejects.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func filterValues(
        _ body: @escaping (T.Element) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { map("filterValues", { try $0.filter(body) }, file, line) }
}

extension Guarantee where T: Sequence {
    /// The elements, transformed.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func mapValues<U>(
        _ body: @escaping (T.Element) -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[U]> { map("mapValues", { $0.map(body) }, file, line) }

    /// The elements of what `body` gives for the elements, in one array.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func flatMapValues<Part: Sequence>(
        _ body: @escaping (T.Element) -> Part, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[Part.Element]> { map("flatMapValues", { $0.flatMap(body) }, file, line) }

    /// The elements, transformed, without those for which `body` gives nil.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func compactMapValues<U>(
        _ body: @escaping (T.Element) -> U?, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[U]> { map("compactMapValues", { $0.compactMap(body) }, file, line) }

    /// The elements that `body` accepts.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func filterValues(
        _ body: @escaping (T.Element) -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[T.Element]> { map("filterValues", { $0.filter(body) }, file, line) }
}
