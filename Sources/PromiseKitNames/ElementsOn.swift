import Promises
import Reactor

// The operators on elements with `on:`. Each makes one job for all elements, like `map(on:)`, and returns a promise
// even for a guarantee.

extension Thenable where T: Sequence & Sendable {
    /// `map(on: dispatcher) { try $0.map(body) }`
    public func mapValues<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> U,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { asPromise().map(on: dispatcher, { try $0.map(body) }, file: file, line: line) }

    /// `map(on: dispatcher) { try $0.flatMap(body) }`
    public func flatMapValues<Part: Sequence & SendableMetatype>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Part,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Part.Element]> where Part.Element: Sendable {
        asPromise().map(on: dispatcher, { try $0.flatMap(body) }, file: file, line: line)
    }

    /// `map(on: dispatcher) { try $0.compactMap(body) }`
    public func compactMapValues<U: Sendable>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> U?,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { asPromise().map(on: dispatcher, { try $0.compactMap(body) }, file: file, line: line) }

    /// Calls `body` with each element on `dispatcher`, in one job. Collects the returned promises' values on this
    /// thread's loop, in the elements' order.
    @available(*, noasync, message: "no loop collects the values in an async function; use then(on:), or await value")
    public func thenMap<Next: Thenable & SendableMetatype>(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Next,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Next.T]> where Next.T: Sendable {
        asPromise().map(on: dispatcher, { try $0.map { try body($0).asPromise() } }, file: file, line: line)
            .then({ when(fulfilled: $0, file: file, line: line) }, file: file, line: line)
    }
}

extension Thenable where T: Sequence & Sendable, T.Element: Sendable {
    /// `map(on: dispatcher) { try $0.filter(body) }`
    public func filterValues(
        on dispatcher: (any Dispatcher)?, _ body: @escaping @Sendable (T.Element) throws -> Bool,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { asPromise().map(on: dispatcher, { try $0.filter(body) }, file: file, line: line) }

    /// The first element for which `body` returns true, or a rejection with `PromiseError.emptySequence`.
    public func firstValue(
        on dispatcher: (any Dispatcher)?, where body: @escaping @Sendable (T.Element) throws -> Bool,
        file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T.Element> {
        asPromise().map(on: dispatcher, { try present($0.first(where: body)) }, file: file, line: line)
    }
}

extension Thenable where T: Sequence & Sendable, T.Element: Comparable & Sendable {
    /// `map(on: dispatcher) { $0.sorted() }`
    public func sortedValues(
        on dispatcher: (any Dispatcher)?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { asPromise().map(on: dispatcher, { $0.sorted() }, file: file, line: line) }
}
