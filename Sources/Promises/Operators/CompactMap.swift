extension Thenable {
    /// Transforms the value, which must have a result.
    /// - Parameter body: called with the value, in a job of this thread's loop. A rejection of this promise skips it.
    /// - Returns: a promise of the result. Rejected with `PromiseError.compactMap`, which shows the value, if `body`
    ///   returns `nil`; otherwise with the error of this promise, or with the error that `body` throws.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable @inline(__always)
    public func compactMap<U>(
        _ body: @escaping (T) throws -> U?, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<U> {
        let source = asPromise().core
        return Promise(
            source.derive(CompactMap(body)).traced("compactMap", after: source, Promise<U>.self, file, line))
    }
}

@usableFromInline
struct CompactMap<T, U>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = U
    @usableFromInline let body: (T) throws -> U?

    @inlinable init(_ body: @escaping (T) throws -> U?) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: PromiseCore) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do {
            if let value = try body(source.value) { return core.finish(value) }
            core.finish(throwing: PromiseError.compactMap(value: PromiseError.shown(source.value), type: "\(U.self)"))
        } catch { core.finish(throwing: error) }
    }
}
