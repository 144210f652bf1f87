/// Waits for all that an iterator gives and collects their values in its order, with no more than `limit` under way at a
/// time: the next is only asked for when one of them is fulfilled. An iterator without any is fulfilled at once.
///
/// ```swift
/// var urls = queue.makeIterator()
/// let pages = when(fulfilled: AnyIterator { urls.next().map(fetch) }, concurrently: 4)
/// ```
///
/// The first rejection rejects the result at once, and no more are asked for; those under way run on, and what becomes of
/// them is not reported. Cancelling the result cancels those under way that nobody else waits for.
///
/// The iterator is asked on this thread: for the first ones inside this call, later by jobs of the thread's loop. It may do
/// what it likes there, cancel the result among others. A `limit` below 1 is rejected with `PromiseError.badInput`,
/// and the iterator is not asked.
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

/// Waits until all have settled that an iterator gives, whichever way, and collects their outcomes in its order, with no
/// more than `limit` under way at a time. Only rejected for a `limit` below 1; see the form with `fulfilled:`.
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

/// Calls `body` with each of `items`, waits for the promises that it returns, and collects their values in the order of
/// the items, with no more than `limit` under way at a time. No items: fulfilled at once.
///
/// ```swift
/// when(fulfilled: urls, concurrently: 4) { url in fetch(url) }
/// ```
///
/// An error that `body` throws counts as the rejection of its item. Items are taken one by one and once; where, and what
/// a rejection, a cancellation and a `limit` below 1 do, see the form with an iterator.
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

/// Calls `body` with each of `items`, waits until the promises that it returns have settled, whichever way, and collects
/// their outcomes in the order of the items, with no more than `limit` under way at a time. Only rejected for a `limit`
/// below 1; see the form with `fulfilled:`.
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
    return Promise(PromiseCore(error: error, origin: nil).traced(root: "when", Promise<Value>.self, file, line))
}

extension ThrottledFanInCore {
    /// Takes the first of what `next` gives, and gathers the values of all.
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

    /// The same for outcomes.
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
