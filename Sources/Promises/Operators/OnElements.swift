import Reactor

// The operators on the elements of a value, for sequences that may cross threads. They make promises of guarantees too,
// since a dispatcher may refuse a job.

extension Thenable where T: Sequence & Sendable {
    /// Transforms each element on `dispatcher`, in one job. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with each element.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the results, in order. Rejected as that of `map(on:)`.
    public func mapValues<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map("mapValues", on: dispatcher, { try $0.map(body) }, file, line) }

    /// Transforms each element into a sequence on `dispatcher`, in one job, and concatenates the sequences. See
    /// `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with each element.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the elements of all sequences, in order. Rejected as that of `map(on:)`.
    public func flatMapValues<Part: Sequence & SendableMetatype>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Part,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Part.Element]> where Part.Element: Sendable {
        map("flatMapValues", on: dispatcher, { try $0.flatMap(body) }, file, line)
    }

    /// Transforms each element on `dispatcher`, in one job, and omits those for which `body` returns `nil`. See
    /// `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with each element.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the results, in order. Rejected as that of `map(on:)`.
    public func compactMapValues<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> U?,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map("compactMapValues", on: dispatcher, { try $0.compactMap(body) }, file, line) }
}

extension Thenable where T: Sequence & Sendable, T.Element: Sendable {
    /// Keeps the elements for which `body` returns `true`, on `dispatcher`, in one job. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with each element.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the elements that remain, in order. Rejected as that of `map(on:)`.
    public func filterValues(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Bool,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { map("filterValues", on: dispatcher, { try $0.filter(body) }, file, line) }

    /// Sorts the elements by `areInIncreasingOrder` on `dispatcher`, in one job; equal elements keep their order. See
    /// `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where the closure runs; `nil` for inline.
    ///   - areInIncreasingOrder: whether its first argument stands before its second.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the sorted elements. Rejected as that of `map(on:)`.
    public func sortedValues(
        on dispatcher: (any Dispatcher)?,
        _ areInIncreasingOrder: @escaping @Sendable (T.Element, T.Element) throws -> Bool,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> {
        map("sortedValues", on: dispatcher, { try $0.sorted(by: areInIncreasingOrder) }, file, line)
    }

    /// Finds the first element for which `body` returns `true`, on `dispatcher`, in one job. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with one element after the other, until it returns `true`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the element. Rejected with `PromiseError.emptySequence` if there is none; otherwise as
    ///   that of `map(on:)`.
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
    /// - Parameters:
    ///   - dispatcher: where the elements are sorted; `nil` for inline.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the sorted elements. Rejected as that of `map(on:)`.
    public func sortedValues(
        on dispatcher: (any Dispatcher)?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { map("sortedValues", on: dispatcher, { $0.sorted() }, file, line) }
}

extension Thenable where T: BidirectionalCollection & Sendable, T.Element: Sendable {
    /// Finds the last element for which `body` returns `true`, on `dispatcher`, in one job. See `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with one element after the other, from the end, until it returns `true`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the element. Rejected with `PromiseError.emptySequence` if there is none; otherwise as
    ///   that of `map(on:)`.
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
    /// The values are collected by this thread's loop; see `thenMap` and `map(on:)`.
    /// - Parameters:
    ///   - dispatcher: where `body` runs; `nil` for inline.
    ///   - body: called with each element. It attaches handlers only with `on:`, unless `dispatcher` is a loop's
    ///     `remote`.
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    /// - Returns: a promise of the values. Rejected with the first error that a promise of `body` is rejected with;
    ///   otherwise as that of `map(on:)`.
    @available(*, noasync, message: "no loop collects the values in an async function; use then(on:), or await value")
    public func thenMap<Next: Thenable & SendableMetatype>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Next.T]> where Next.T: Sendable {
        let made = map("thenMap", on: dispatcher, { promises(for: $0, body) }, file, line)
        return made.then({ when(fulfilled: $0, file: file, line: line) }, file: file, line: line)
    }
}
