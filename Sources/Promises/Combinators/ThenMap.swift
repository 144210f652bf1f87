extension Thenable where T: Sequence {
    /// Calls `body` with each element of the value, waits for all promises that it returns, and collects their values
    /// in the order of the elements.
    ///
    /// ```swift
    /// firstly { fetchIDs() }.thenMap { id in fetchUser(id) }
    /// ```
    ///
    /// `body` is called for all elements without waiting in between. After a rejection, the other promises continue.
    /// See `when(fulfilled:)`.
    /// - Parameter body: called with each element, in a job of this thread's loop. An error that it throws counts as the
    ///   rejection of the element, and it is not called for later elements.
    /// - Returns: a promise of the values. It is rejected with the error of this promise, or with the first error that
    ///   a promise of `body` is rejected with.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func thenMap<Next: Thenable>(
        _ body: @escaping (T.Element) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Next.T]> {
        let source = asPromise().core
        let child = source.derive(
            Then { (elements: T) in when(fulfilled: promises(for: elements, body), file: file, line: line) })
        return Promise(child.traced("thenMap", after: source, Promise<[Next.T]>.self, file, line))
    }

    /// The form for closures of several statements, of which one may be `return .value(…)`.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: as the other form.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @_disfavoredOverload
    public func thenMap<U>(
        _ body: @escaping (T.Element) throws -> Promise<U>, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[U]> {
        let source = asPromise().core
        let child = source.derive(
            Then { (elements: T) in when(fulfilled: promises(for: elements, body), file: file, line: line) })
        return Promise(child.traced("thenMap", after: source, Promise<[U]>.self, file, line))
    }

    /// Calls `body` with each element of the value, with at most `limit` promises pending at a time, and collects their
    /// values in the order of the elements.
    ///
    /// See `when(fulfilled:concurrently:)`.
    /// - Parameters:
    ///   - limit: the maximum number of pending promises. With 1, the elements are processed in sequence.
    ///   - body: called with each element, in jobs of this thread's loop.
    /// - Returns: a promise of the values. It is rejected with the error of this promise, with the first error that a
    ///   promise of `body` is rejected with or that `body` throws, or with `PromiseError.badInput` if `limit` is below
    ///   1.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func thenMap<Next: Thenable>(
        concurrently limit: Int, _ body: @escaping (T.Element) throws -> Next, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<[Next.T]> {
        let source = asPromise().core
        let child = source.derive(
            Then { (elements: T) in when(fulfilled: elements, concurrently: limit, body, file: file, line: line) })
        return Promise(child.traced("thenMap", after: source, Promise<[Next.T]>.self, file, line))
    }

    /// Calls `body` with each element of the value, waits for all promises that it returns, and concatenates their
    /// values in the order of the elements; see `thenMap`.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a promise of the elements of all values. It is rejected as that of `thenMap`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func thenFlatMap<Next: Thenable>(
        _ body: @escaping (T.Element) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<[Next.T.Element]> where Next.T: Sequence {
        let source = asPromise().core
        let child = source.derive(
            Then { (elements: T) -> Promise<[Next.T.Element]> in
                let parts = promises(for: elements, body)
                if parts.isEmpty { return .value([]) }
                return Promise(FanInCore.joinedValues(of: parts))
            })
        return Promise(child.traced("thenFlatMap", after: source, Promise<[Next.T.Element]>.self, file, line))
    }
}

extension Guarantee where T: Sequence {
    /// Calls `body` with each element of the value, waits for all guarantees that it returns, and collects their values
    /// in the order of the elements. `body` is called for all elements without waiting in between.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a guarantee of the values.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @discardableResult
    public func thenMap<Next>(
        _ body: @escaping (T.Element) -> Guarantee<Next>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[Next]> {
        let child = core.derive(
            GuaranteeThen { (elements: T) in when(guarantees: elements.map(body), file: file, line: line) })
        return Guarantee<[Next]>(child.traced("thenMap", after: core, Guarantee<[Next]>.self, file, line))
    }

    /// Calls `body` with each element of the value, waits for all guarantees that it returns, and concatenates their
    /// values in the order of the elements.
    /// - Parameter body: called with each element, in a job of this thread's loop.
    /// - Returns: a guarantee of the elements of all values.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @discardableResult
    public func thenFlatMap<Next: Sequence>(
        _ body: @escaping (T.Element) -> Guarantee<Next>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<[Next.Element]> {
        let child = core.derive(
            GuaranteeThen { (elements: T) -> Guarantee<[Next.Element]> in
                let guarantees = elements.map(body)
                if guarantees.isEmpty { return .value([]) }
                return Guarantee<[Next.Element]>(FanInCore.joinedValues(of: guarantees))
            })
        return Guarantee<[Next.Element]>(
            child.traced("thenFlatMap", after: core, Guarantee<[Next.Element]>.self, file, line))
    }
}

/// The promises that `body` returns for `items`. If `body` throws, the last promise is rejected with that error.
@inlinable
func promises<Items: Sequence, Next: Thenable>(
    for items: Items, _ body: (Items.Element) throws -> Next
) -> [Promise<Next.T>] {
    var promises: [Promise<Next.T>] = []
    promises.reserveCapacity(items.underestimatedCount)
    for item in items {
        do { promises.append(try body(item).asPromise()) } catch {
            promises.append(Promise(PromiseCore(error: error)))
            break
        }
    }
    return promises
}

extension FanInCore {
    /// The elements of all values in one array. `thenables` must not be empty.
    @inlinable
    static func joinedValues<Each: Thenable>(of thenables: [Each]) -> FanInCore where Each.T: Sequence {
        FanInCore(.all, thenables.count) { result, _ in
            result.fulfill((0..<result.count).flatMap { result.value(at: $0, as: Each.T.self) })
        } code: {
            PromiseCore.perform(Follow<[Each.T.Element]>.self, $0, $1)
        }.wait(for: thenables)
    }
}
