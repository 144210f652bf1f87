/// Calls `body` with the first of `items`, waits for the promise that it returns, goes on with the next, and so on: one
/// after the other. No items: fulfilled at once.
///
/// ```swift
/// forEach(migrations) { migration in database.apply(migration) }
/// ```
///
/// The first rejection, or an error that `body` throws, rejects the result, and ends it. Items are taken one by one and
/// once, each when it is its turn. The first call is inside this one, later ones are jobs of this thread's loop; a
/// million of them take no more memory than one. Cancelling the result cancels the promise of the item at hand, if
/// nobody else waits for it. For several at a time see `when(fulfilled:concurrently:)`.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func forEach<Items: Sequence, Next: Thenable>(
    _ items: Items, _ body: @escaping (Items.Element) throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> {
    let series = SequentialOperation<Void>(each: items) { try body($0).asPromise().core }
    return Promise(series.start(series.makeCore().traced(root: "forEach", Promise<Void>.self, file, line)))
}

/// Calls `body` with each of `items`, one after the other, each when the guarantee of the one before is fulfilled; see the
/// form with promises.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@discardableResult
public func forEach<Items: Sequence, Value>(
    _ items: Items, _ body: @escaping (Items.Element) -> Guarantee<Value>, file: StaticString = #fileID,
    line: UInt = #line
) -> Guarantee<Void> {
    let series = SequentialOperation<Void>(each: items) { body($0).core }
    return Guarantee(series.start(series.makeCore().traced(root: "forEach", Guarantee<Void>.self, file, line)))
}

extension Thenable where T: Sequence {
    /// Calls `body` with each element of the value, one after the other, each when the promise of the one before is
    /// fulfilled. The first rejection, or an error that `body` throws, ends it; see `forEach`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func thenForEach<Next: Thenable>(
        _ body: @escaping (T.Element) throws -> Next, file: StaticString = #fileID, line: UInt = #line
    ) -> Promise<Void> {
        let source = asPromise().core
        let child = source.derive(SequentialOperation<Void>(eachOf: T.self) { try body($0).asPromise().core })
        return Promise(child.traced("thenForEach", after: source, Promise<Void>.self, file, line))
    }

    /// Folds the elements of the value into one, one after the other: calls `body` with what has come out so far, at first
    /// `initial`, and the next element, and goes on with the value of the promise that it returns. No elements: `initial`.
    ///
    /// ```swift
    /// chunks.thenReduce(0) { sent, chunk in upload(chunk).map { sent + $0 } }
    /// ```
    ///
    /// The first rejection, or an error that `body` throws, ends it. A million elements take no more memory than one.
    /// Cancelling the result cancels the promise of the element at hand, if nobody else waits for it.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func thenReduce<Value, Next: Thenable>(
        _ initial: Value, _ body: @escaping (Value, T.Element) throws -> Next, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Value> where Next.T == Value {
        let source = asPromise().core
        let child = source.derive(SequentialOperation(folding: T.self, initial) { try body($0, $1).asPromise().core })
        return Promise(child.traced("thenReduce", after: source, Promise<Value>.self, file, line))
    }
}

extension Guarantee where T: Sequence {
    /// Calls `body` with each element of the value, one after the other, each when the guarantee of the one before is
    /// fulfilled; see `forEach`.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @discardableResult
    public func thenForEach<Next>(
        _ body: @escaping (T.Element) -> Guarantee<Next>, file: StaticString = #fileID, line: UInt = #line
    ) -> Guarantee<Void> {
        let child = core.derive(SequentialOperation<Void>(eachOf: T.self) { body($0).core })
        return Guarantee<Void>(child.traced("thenForEach", after: core, Guarantee<Void>.self, file, line))
    }

    /// Folds the elements of the value into one, one after the other; see the form for promises.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    @discardableResult
    public func thenReduce<Value>(
        _ initial: Value, _ body: @escaping (Value, T.Element) -> Guarantee<Value>, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Guarantee<Value> {
        let child = core.derive(SequentialOperation(folding: T.self, initial) { body($0, $1).core })
        return Guarantee<Value>(child.traced("thenReduce", after: core, Guarantee<Value>.self, file, line))
    }
}

extension SequentialOperation where Value == Void {
    @inlinable
    init<Items: Sequence>(each items: Items, _ body: @escaping (Items.Element) throws -> PromiseCore) {
        var iterator = items.makeIterator()
        self.init { _, core in
            if let item = iterator.next() { return try body(item) }
            core.finish(())
            return nil
        }
    }

    /// The same for the elements of the first source's value.
    @inlinable
    init<Items: Sequence>(eachOf type: Items.Type, _ body: @escaping (Items.Element) throws -> PromiseCore) {
        var iterator: Items.Iterator?
        self.init { source, core in
            if iterator == nil {
                iterator = source?._withUnsafeGuaranteedRef { $0.value(as: Items.self).makeIterator() }
            }
            if let item = iterator?.next() { return try body(item) }
            core.finish(())
            return nil
        }
    }
}

extension SequentialOperation {
    @inlinable
    init<Items: Sequence>(
        folding type: Items.Type, _ initial: Value, _ body: @escaping (Value, Items.Element) throws -> PromiseCore
    ) {
        var iterator: Items.Iterator?
        var value = initial
        self.init { source, core in
            if iterator == nil {
                iterator = source?._withUnsafeGuaranteedRef { $0.value(as: Items.self).makeIterator() }
            } else if let source {
                value = source._withUnsafeGuaranteedRef { $0.value(as: Value.self) }
            }
            if let item = iterator?.next() { return try body(value, item) }
            core.finish(value)
            return nil
        }
    }
}
