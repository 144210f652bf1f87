import Reactor

// The operators on the elements of a value, for sequences that may cross threads. They make promises of guarantees too,
// since a dispatcher may refuse a job.

extension Thenable where T: Sequence & Sendable {
    /// Transforms each element on `dispatcher`, in one job. An error that `body` throws rejects the result. See
    /// `map(on:)`.
    @inlinable
    public func mapValues<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map("mapValues", on: dispatcher, { try $0.map(body) }, file, line) }

    /// Transforms each element into a sequence on `dispatcher`, in one job, and concatenates the sequences. An error
    /// that `body` throws rejects the result. See `map(on:)`.
    @inlinable
    public func flatMapValues<Part: Sequence & SendableMetatype>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Part,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Part.Element]> where Part.Element: Sendable {
        map("flatMapValues", on: dispatcher, { try $0.flatMap(body) }, file, line)
    }

    /// Transforms each element on `dispatcher`, in one job, and omits those for which `body` returns `nil`. An error that
    /// `body` throws rejects the result. See `map(on:)`.
    @inlinable
    public func compactMapValues<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> U?,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map("compactMapValues", on: dispatcher, { try $0.compactMap(body) }, file, line) }
}

extension Thenable where T: Sequence & Sendable, T.Element: Sendable {
    /// Keeps the elements for which `body` returns `true`, on `dispatcher`, in one job. An error that `body` throws
    /// rejects the result. See `map(on:)`.
    @inlinable
    public func filterValues(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Bool,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { map("filterValues", on: dispatcher, { try $0.filter(body) }, file, line) }

    /// Sorts the elements by `areInIncreasingOrder` on `dispatcher`, in one job; equal elements keep their order. An
    /// error that the closure throws rejects the result. See `map(on:)`.
    @inlinable
    public func sortedValues(
        on dispatcher: (any Dispatcher)?,
        _ areInIncreasingOrder: @escaping @Sendable (T.Element, T.Element) throws -> Bool,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> {
        map("sortedValues", on: dispatcher, { try $0.sorted(by: areInIncreasingOrder) }, file, line)
    }

    /// The first element for which `body` returns `true`, found on `dispatcher`, in one job. If there is none, rejects
    /// with `PromiseError.emptySequence`. An error that `body` throws rejects the result. See `map(on:)`.
    @inlinable
    public func firstValue(
        on dispatcher: (any Dispatcher)?, where body: @escaping @Sendable (T.Element) throws -> Bool,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T.Element> {
        map("firstValue", on: dispatcher, { try PromiseError.present($0.first(where: body)) }, file, line)
    }
}

extension Thenable where T: Sequence & Sendable, T.Element: Comparable & Sendable {
    /// Sorts the elements in ascending order on `dispatcher`, in one job; equal elements keep their order. See
    /// `map(on:)`.
    @inlinable
    public func sortedValues(
        on dispatcher: (any Dispatcher)?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { map("sortedValues", on: dispatcher, { $0.sorted() }, file, line) }
}

extension Thenable where T: BidirectionalCollection & Sendable, T.Element: Sendable {
    /// The last element for which `body` returns `true`, found on `dispatcher`, in one job. If there is none, rejects
    /// with `PromiseError.emptySequence`. An error that `body` throws rejects the result. See `map(on:)`.
    @inlinable
    public func lastValue(
        on dispatcher: (any Dispatcher)?, where body: @escaping @Sendable (T.Element) throws -> Bool,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T.Element> {
        map("lastValue", on: dispatcher, { try PromiseError.present($0.last(where: body)) }, file, line)
    }
}

extension Thenable where T: Sequence & Sendable {
    /// Calls `body` with each element on `dispatcher`, in one job, waits for all promises that it returns, and collects
    /// their values in the order of the elements.
    ///
    /// In `body`, attach handlers only with `on:`, unless `dispatcher` is a loop's `remote`. The values are collected by
    /// this thread's loop, and the first rejection rejects the result; see `thenMap` and `map(on:)`.
    @available(*, noasync, message: "no loop collects the values in an async function; use then(on:), or await value")
    @inlinable
    public func thenMap<Next: Thenable & SendableMetatype>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Next.T]> where Next.T: Sendable {
        let made = map("thenMap", on: dispatcher, { promises(for: $0, body) }, file, line)
        return made.then({ when(fulfilled: $0, file: file, line: line) }, file: file, line: line)
    }
}
