// A property does not receive its call site, so a trace shows `firstValue` and `lastValue` without a file and a line.

extension Thenable where T: Sequence {
    /// The first element. An empty sequence rejects with `PromiseError.emptySequence`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public var firstValue: Promise<T.Element> {
        map("firstValue", { try PromiseError.present($0.first { _ in true }) }, "", 0)
    }

    /// Finds the first element for which `body` returns `true`.
    /// - Parameter body: called with one element after the other, in a job of this thread's loop, until it returns `true`.
    /// - Returns: a promise of the element. Rejected with `PromiseError.emptySequence` if there is none; otherwise with
    ///   the error of this promise, or with the error that `body` throws.
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

    /// Finds the last element for which `body` returns `true`.
    /// - Parameter body: called with one element after the other, from the end, in a job of this thread's loop, until it
    ///   returns `true`.
    /// - Returns: a promise of the element. Rejected with `PromiseError.emptySequence` if there is none; otherwise with
    ///   the error of this promise, or with the error that `body` throws.
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

    /// Finds the first element for which `body` returns `true`.
    /// - Parameter body: called with one element after the other, in a job of this thread's loop, until it returns `true`.
    /// - Returns: a guarantee of the element, or of `nil` if there is none.
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

    /// Finds the last element for which `body` returns `true`.
    /// - Parameter body: called with one element after the other, from the end, in a job of this thread's loop, until it
    ///   returns `true`.
    /// - Returns: a guarantee of the element, or of `nil` if there is none.
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
