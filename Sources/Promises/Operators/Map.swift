extension Thenable {
    /// Transforms the value.
    ///
    /// ```swift
    /// fetch(url).map { page in page.title }
    /// ```
    ///
    /// - Parameter body: called in a job on this thread's loop.
    /// - Returns: a promise of the result. Rejected with an error from this promise or `body`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func map<U>(
        _ body: consuming @escaping (T) throws -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> { map("map", body, file, line) }

    /// Discards the value.
    /// - Returns: a promise that settles when this one does, with the same error if it is rejected.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func asVoid(file: StaticString = #fileID, line: UInt = #line) -> Promise<Void> {
        map("asVoid", { _ in }, file, line)
    }

    @inlinable @inline(__always)
    package func map<U>(
        _ name: StaticString, _ body: consuming @escaping (T) throws -> U, _ file: StaticString, _ line: UInt
    ) -> Promise<U> { derived(name, Map(body), file, line) }
}

extension Guarantee {
    /// Transforms the value; see `Promise.map`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func map<U>(
        _ body: consuming @escaping (T) -> U, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<U> { map("map", body, file, line) }

    /// Discards the value.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func asVoid(file: StaticString = #fileID, line: UInt = #line) -> Guarantee<Void> {
        map("asVoid", { _ in }, file, line)
    }

    @inlinable @inline(__always)
    func map<U>(
        _ name: StaticString, _ body: consuming @escaping (T) -> U, _ file: StaticString, _ line: UInt
    ) -> Guarantee<U> { derived(name, Map(body), file, line) }
}

@usableFromInline
struct Map<T, U>: Operation {
    @usableFromInline typealias Output = U
    @usableFromInline let body: (T) throws -> U

    @inlinable init(_ body: consuming @escaping (T) throws -> U) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do { core.finish(try body(source.takeValue())) } catch { core.finish(throwing: error) }
    }
}
