/// Calls `body` with each of `items` in sequence. Each call waits for the promise of the previous one.
///
/// ```swift
/// forEach(migrations) { migration in database.apply(migration) }
/// ```
///
/// Takes constant memory.
///
/// Cancelling the result cancels the current item's promise, unless another handler waits for it. To process several
/// items at a time, see `when(fulfilled:concurrently:)`. For a promise of items, write `then { forEach($0) { … } }`.
/// - Parameters:
///   - items: iterated once. Each item is taken when its turn comes.
///   - body: called with each item, first inside this call and then in jobs on this thread's loop.
/// - Returns: a promise that is fulfilled after the last item, or at once without items. The first error from `body` or
///   its promises rejects it; later items are not processed.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func forEach<Items: Sequence, Next: Thenable>(
    _ items: Items, _ body: @escaping (Items.Element) throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> {
    let series = SequentialOperation<Void>(each: items) { try body($0).asPromise().core }
    return Promise(series.begin("forEach", as: Promise<Void>.self, file, line))
}

extension Thenable where T: Sequence {
    /// Folds the elements of the value, one after another.
    ///
    /// ```swift
    /// chunks.thenReduce(0) { sent, chunk in upload(chunk).map { sent + $0 } }
    /// ```
    ///
    /// Takes constant memory. Cancelling the result cancels the current element's promise, unless another handler waits
    /// for it.
    /// - Parameters:
    ///   - initial: the first accumulated value.
    ///   - body: called with the accumulated value and the next element, in jobs on this thread's loop. Returns a
    ///     promise of the next accumulated value.
    /// - Returns: a promise of the last accumulated value. Rejected with this promise's error, or with the first error
    ///   from `body` or its promises; later elements are not processed.
    @available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
    @inlinable
    public func thenReduce<Value, Next: Thenable>(
        _ initial: Value, _ body: @escaping (Value, T.Element) throws -> Next, file: StaticString = #fileID,
        line: UInt = #line
    ) -> Promise<Value> where Next.T == Value {
        let folding = SequentialOperation(folding: T.self, initial) { try body($0, $1).asPromise().core }
        return derived("thenReduce", folding, file, line)
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
                iterator = source?.payload.value(as: Items.self).makeIterator()
            } else if let source {
                value = source.payload.value(as: Value.self)
            }
            if let item = iterator?.next() { return try body(value, item) }
            core.finish(value)
            return nil
        }
    }
}
