// A property is not told where it is asked for, so a trace shows the two here with their place in this file.

extension Thenable where T: Sequence {
    /// The first element; an empty sequence rejects with `PromiseError.emptySequence`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var firstValue: Promise<T.Element> {
        map("firstValue", { try PromiseError.present($0.first { _ in true }) }, "", 0)
    }

    /// The first element that `body` accepts; if there is none, rejects with `PromiseError.emptySequence`. An error that
    /// `body` throws rejects.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func firstValue(
        where body: @escaping (T.Element) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T.Element> { map("firstValue", { try PromiseError.present($0.first(where: body)) }, file, line) }
}

extension Thenable where T: BidirectionalCollection {
    /// The last element; an empty collection rejects with `PromiseError.emptySequence`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var lastValue: Promise<T.Element> { map("lastValue", { try PromiseError.present($0.last) }, "", 0) }

    /// The last element that `body` accepts, sought from the end; if there is none, rejects with
    /// `PromiseError.emptySequence`. An error that `body` throws rejects.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func lastValue(
        where body: @escaping (T.Element) throws -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<T.Element> { map("lastValue", { try PromiseError.present($0.last(where: body)) }, file, line) }
}

extension Guarantee where T: Sequence {
    /// The first element, or nil.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var firstValue: Guarantee<T.Element?> { map("firstValue", { $0.first { _ in true } }, "", 0) }

    /// The first element that `body` accepts, or nil.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func firstValue(
        where body: @escaping (T.Element) -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T.Element?> { map("firstValue", { $0.first(where: body) }, file, line) }
}

extension Guarantee where T: BidirectionalCollection {
    /// The last element, or nil.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var lastValue: Guarantee<T.Element?> { map("lastValue", { $0.last }, "", 0) }

    /// The last element that `body` accepts, sought from the end, or nil.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func lastValue(
        where body: @escaping (T.Element) -> Bool, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<T.Element?> { map("lastValue", { $0.last(where: body) }, file, line) }
}

extension PromiseError {
    /// What is asked for, if it is there.
    @inlinable
    static func present<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw emptySequence }
        return value
    }
}
