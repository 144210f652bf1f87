import Promises
import Reactor

// `map`-based operators on the elements of a sequence. A closure that throws is not called for the remaining elements.

extension Thenable where T: Sequence {
    /// `map { try $0.map(body) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func mapValues<U>(
        _ body: @escaping (T.Element) throws -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map({ try $0.map(body) }, file: file, line: line) }

    /// `map { try $0.flatMap(body) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func flatMapValues<Part: Sequence>(
        _ body: @escaping (T.Element) throws -> Part, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Part.Element]> { map({ try $0.flatMap(body) }, file: file, line: line) }

    /// `map { try $0.compactMap(body) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func compactMapValues<U>(
        _ body: @escaping (T.Element) throws -> U?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> { map({ try $0.compactMap(body) }, file: file, line: line) }

    /// `map { try $0.filter(body) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func filterValues(
        _ body: @escaping (T.Element) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[T.Element]> { map({ try $0.filter(body) }, file: file, line: line) }

    /// The first element, or a rejection with `PromiseError.emptySequence`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public var firstValue: Promise<T.Element> { firstValue { _ in true } }

    /// The first element for which `body` returns true, or a rejection with `PromiseError.emptySequence`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func firstValue(
        where body: @escaping (T.Element) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T.Element> { map({ try present($0.first(where: body)) }, file: file, line: line) }

    /// `thenMap(body).map { $0.flatMap { $0 } }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func thenFlatMap<Next: Thenable>(
        _ body: @escaping (T.Element) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Next.T.Element]> where Next.T: Sequence {
        thenMap(body, file: file, line: line).map({ $0.flatMap { $0 } }, file: file, line: line)
    }
}

extension Thenable where T: Sequence, T.Element: Comparable {
    /// `map { $0.sorted() }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func sortedValues(file: StaticString = #fileID, line: UInt = #line) -> Promise<[T.Element]> {
        map({ $0.sorted() }, file: file, line: line)
    }
}

extension Thenable where T: BidirectionalCollection {
    /// The last element, or a rejection with `PromiseError.emptySequence`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public var lastValue: Promise<T.Element> { map { try present($0.last) } }
}

extension Guarantee where T: Sequence {
    /// `map { $0.map(body) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func mapValues<U>(
        _ body: @escaping (T.Element) -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[U]> { map({ $0.map(body) }, file: file, line: line) }

    /// `map { $0.flatMap(body) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func flatMapValues<Part: Sequence>(
        _ body: @escaping (T.Element) -> Part, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[Part.Element]> { map({ $0.flatMap(body) }, file: file, line: line) }

    /// `map { $0.compactMap(body) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func compactMapValues<U>(
        _ body: @escaping (T.Element) -> U?, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[U]> { map({ $0.compactMap(body) }, file: file, line: line) }

    /// `map { $0.filter(body) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func filterValues(
        _ body: @escaping (T.Element) -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[T.Element]> { map({ $0.filter(body) }, file: file, line: line) }

    /// `map { $0.sorted(by: areInIncreasingOrder) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func sortedValues(
        _ areInIncreasingOrder: @escaping (T.Element, T.Element) -> Bool, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Guarantee<[T.Element]> { map({ $0.sorted(by: areInIncreasingOrder) }, file: file, line: line) }

    /// `then { when(guarantees: $0.map(body)) }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func thenMap<Next>(
        _ body: @escaping (T.Element) -> Guarantee<Next>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[Next]> {
        then({ when(guarantees: $0.map(body), file: file, line: line) }, file: file, line: line)
    }

    /// `thenMap(body).map { $0.flatMap { $0 } }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @discardableResult
    public func thenFlatMap<Next: Sequence>(
        _ body: @escaping (T.Element) -> Guarantee<Next>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[Next.Element]> {
        thenMap(body, file: file, line: line).map({ $0.flatMap { $0 } }, file: file, line: line)
    }
}

extension Guarantee where T: Sequence, T.Element: Comparable {
    /// `map { $0.sorted() }`
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    public func sortedValues(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<[T.Element]> {
        map({ $0.sorted() }, file: file, line: line)
    }
}

/// Unwraps `value`; throws `PromiseError.emptySequence` if it is `nil`.
func present<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw PromiseError.emptySequence }
    return value
}
