extension Thenable {
    /// The value, transformed. An error that `body` throws rejects; a rejection passes `body` by.
    @inlinable
    public func map<U>(_ body: consuming @escaping (T) throws -> U) -> Promise<U> {
        let child = Core(Map(body))
        asPromise().core.attach(child)
        return Promise(child)
    }

    /// Without the value.
    @inlinable
    public func asVoid() -> Promise<Void> { map { _ in } }
}

extension Guarantee {
    /// The value, transformed.
    @inlinable
    public func map<U>(_ body: consuming @escaping (T) -> U) -> Guarantee<U> {
        let child = Core(Map<T, U>(body))
        core.attach(child)
        return Guarantee<U>(child)
    }

    /// Without the value.
    @inlinable
    public func asVoid() -> Guarantee<Void> { map { _ in } }
}

@usableFromInline
struct Map<T, U>: Operation {
    @usableFromInline typealias Input = T
    @usableFromInline typealias Output = U
    @usableFromInline let body: (T) throws -> U

    @inlinable init(_ body: consuming @escaping (T) throws -> U) { self.body = body }

    @inlinable @inline(__always)
    func run(_ source: Source<T>, _ core: Core) {
        guard source.isFulfilled else { return core.finish(rejectedAs: source.reference) }
        do { core.finish(try body(source.value)) } catch { core.finish(throwing: error) }
    }
}
