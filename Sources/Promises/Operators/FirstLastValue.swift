// A property does not receive its call site, so a trace shows `firstValue` and `lastValue` without a file and a line.

extension Thenable where T: Sequence {
    /// The first element. An empty sequence rejects with `PromiseError.emptySequence`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var firstValue: Promise<T.Element> {
        map("firstValue", { try PromiseError.present($0.first { _ in true }) }, "", 0)
    }

    /// The first element for which `body` returns `true`; if there is none, rejects with `PromiseError.emptySequence`.
    /// An error that `body` throws rejects the result.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func firstValue(
        where body: @escaping (T.Element) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T.Element> { map("firstValue", { try PromiseError.present($0.first(where: body)) }, file, line) }
}

extension Thenable where T: BidirectionalCollection {
    /// The last element. An empty collection rejects with `PromiseError.emptySequence`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var lastValue: Promise<T.Element> { map("lastValue", { try PromiseError.present($0.last) }, "", 0) }

    /// The last element for which `body` returns `true`, searched from the end; if there is none, rejects with
    /// `PromiseError.emptySequence`. An error that `body` throws rejects the result.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func lastValue(
        where body: @escaping (T.Element) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T.Element> { map("lastValue", { try PromiseError.present($0.last(where: body)) }, file, line) }
}

extension Guarantee where T: Sequence {
    /// The first element, or `nil` if the sequence is empty.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var firstValue: Guarantee<T.Element?> { map("firstValue", { $0.first { _ in true } }, "", 0) }

    /// The first element for which `body` returns `true`, or `nil` if there is none.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func firstValue(
        where body: @escaping (T.Element) -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T.Element?> { map("firstValue", { $0.first(where: body) }, file, line) }
}

extension Guarantee where T: BidirectionalCollection {
    /// The last element, or `nil` if the collection is empty.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var lastValue: Guarantee<T.Element?> { map("lastValue", { $0.last }, "", 0) }

    /// The last element for which `body` returns `true`, searched from the end, or `nil` if there is none.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func lastValue(
        where body: @escaping (T.Element) -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T.Element?> { map("lastValue", { $0.last(where: body) }, file, line) }
}

extension PromiseError {
    /// Unwraps `value`; throws `emptySequence` if it is `nil`.
    @inlinable
    static func present<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw emptySequence }
        return value
    }
}
