/// Waits for every promise of an iterator, with at most `limit` pending at a time, and collects their values in the
/// order of the iterator.
///
/// ```swift
/// var urls = queue.makeIterator()
/// let pages = when(fulfilled: AnyIterator { urls.next().map(fetch) }, concurrently: 4)
/// ```
///
/// The next promise is requested only when a previous one is fulfilled. After the first rejection no more promises are
/// requested. The pending ones continue, and their outcomes are not reported. Cancelling the result cancels the pending
/// promises that no other handler waits for.
/// - Parameters:
///   - iterator: makes the promises, on this thread: the first ones inside this call, later ones in jobs of the
///     thread's loop. It may run any code, even cancel the result.
///   - limit: the maximum number of pending promises.
/// - Returns: a promise of the values; without promises it is fulfilled immediately. It is rejected immediately with
///   the first rejection, or with `PromiseError.badInput` if `limit` is below 1, in which case the iterator is not
///   used.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Iterator: IteratorProtocol>(
    fulfilled iterator: Iterator, concurrently limit: Int, file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Iterator.Element.T]> where Iterator.Element: Thenable {
    guard limit > 0 else { return rejectInvalidLimit("when(fulfilled:concurrently:)", limit, file, line) }
    var iterator = iterator
    let core = ThrottledFanInCore(values: Iterator.Element.T.self, limit) { iterator.next()?.asPromise().core }
    return Promise(core.traced(root: "when", Promise<[Iterator.Element.T]>.self, file, line))
}

/// Waits until every promise of an iterator has settled, with at most `limit` pending at a time, and collects their
/// outcomes in the order of the iterator.
///
/// See the form with `fulfilled:`.
/// - Parameters:
///   - iterator: as for the form with `fulfilled:`.
///   - limit: the maximum number of pending promises.
/// - Returns: a promise of the outcomes. It is rejected only with `PromiseError.badInput`, if `limit` is below 1.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Iterator: IteratorProtocol>(
    resolved iterator: Iterator, concurrently limit: Int, file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Result<Iterator.Element.T, any Error>]> where Iterator.Element: Thenable {
    guard limit > 0 else { return rejectInvalidLimit("when(resolved:concurrently:)", limit, file, line) }
    var iterator = iterator
    let core = ThrottledFanInCore(results: Iterator.Element.T.self, limit) { iterator.next()?.asPromise().core }
    return Promise(core.traced(root: "when", Promise<[Result<Iterator.Element.T, any Error>]>.self, file, line))
}

/// Calls `body` with each of `items`, with at most `limit` promises pending at a time, and collects their values in the
/// order of the items.
///
/// ```swift
/// when(fulfilled: urls, concurrently: 4) { url in fetch(url) }
/// ```
///
/// For rejections and cancellation, see the form with an iterator.
/// - Parameters:
///   - items: the items. The sequence is iterated once, one item at a time.
///   - limit: the maximum number of pending promises.
///   - body: called with each item on this thread: inside this call for the first items, in jobs of the thread's loop
///     for later ones. An error that it throws counts as the rejection of the item.
/// - Returns: a promise of the values; without items it is fulfilled immediately. It is rejected immediately with the
///   first rejection, or with `PromiseError.badInput` if `limit` is below 1, in which case `body` is not called.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Items: Sequence, Next: Thenable>(
    fulfilled items: Items, concurrently limit: Int, _ body: @escaping (Items.Element) throws -> Next,
    file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Next.T]> {
    guard limit > 0 else { return rejectInvalidLimit("when(fulfilled:concurrently:)", limit, file, line) }
    var iterator = items.makeIterator()
    let core = ThrottledFanInCore(values: Next.T.self, limit) {
        try iterator.next().map { try body($0).asPromise().core }
    }
    return Promise(core.traced(root: "when", Promise<[Next.T]>.self, file, line))
}

/// Calls `body` with each of `items`, with at most `limit` promises pending at a time, waits until all have settled,
/// and collects their outcomes in the order of the items.
/// - Parameters:
///   - items: the items. The sequence is iterated once, one item at a time.
///   - limit: the maximum number of pending promises.
///   - body: as for the form with `fulfilled:`.
/// - Returns: a promise of the outcomes. It is rejected only with `PromiseError.badInput`, if `limit` is below 1.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Items: Sequence, Next: Thenable>(
    resolved items: Items, concurrently limit: Int, _ body: @escaping (Items.Element) throws -> Next,
    file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Result<Next.T, any Error>]> {
    guard limit > 0 else { return rejectInvalidLimit("when(resolved:concurrently:)", limit, file, line) }
    var iterator = items.makeIterator()
    let core = ThrottledFanInCore(results: Next.T.self, limit) {
        try iterator.next().map { try body($0).asPromise().core }
    }
    return Promise(core.traced(root: "when", Promise<[Result<Next.T, any Error>]>.self, file, line))
}

@usableFromInline
func rejectInvalidLimit<Value>(_ call: String, _ limit: Int, _ file: StaticString, _ line: UInt) -> Promise<Value> {
    let error = PromiseError.badInput("\(call) with \(limit) at a time")
    return Promise(PromiseCore(error: error).traced(root: "when", Promise<Value>.self, file, line))
}

extension ThrottledFanInCore {
    /// Takes the first sources from `next`, and collects the values of all sources.
    @inlinable
    convenience init<Value>(values type: Value.Type, _ limit: Int, _ next: @escaping () throws -> PromiseCore?) {
        var values: [Value?] = []
        let callbacks = Callbacks(next: next) { index, source in
            while values.count <= index { values.append(nil) }
            values[index] = .some(Source<Value>(source.reference, isFulfilled: true).value)
        } complete: {
            $0.fulfill(values.map { $0! })
        }
        self.init(limit, keepsRejections: false, callbacks) { PromiseCore.perform(Follow<[Value]>.self, $0, $1) }
        start()
    }

    /// Takes the first sources from `next`, and collects the outcomes of all sources.
    @inlinable
    convenience init<Value>(results type: Value.Type, _ limit: Int, _ next: @escaping () throws -> PromiseCore?) {
        var results: [Result<Value, any Error>?] = []
        let callbacks = Callbacks(next: next) { index, source in
            while results.count <= index { results.append(nil) }
            results[index] = Source<Value>(source.reference, isFulfilled: source.isFulfilled).result
        } complete: {
            $0.fulfill(results.map { $0! })
        }
        self.init(limit, keepsRejections: true, callbacks) {
            PromiseCore.perform(Follow<[Result<Value, any Error>]>.self, $0, $1)
        }
        start()
    }
}
