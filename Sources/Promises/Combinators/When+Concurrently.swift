/// Calls `body` with each of `items`, with at most `limit` promises pending, and collects their values in order.
///
/// ```swift
/// when(fulfilled: urls, concurrently: 4) { url in fetch(url) }
/// ```
///
/// After the first rejection no more items are requested. The pending promises continue, and their outcomes are not
/// reported. Cancelling the result cancels the pending promises that no other handler waits for.
/// - Parameters:
///   - items: iterated once, one item per call of `body`. May run any code, even cancel the result.
///   - limit: the most pending promises.
///   - body: called with each item on this thread: inside this call for the first items, then in jobs on the loop. An
///     error that it throws rejects the item.
/// - Returns: a promise of the values, fulfilled at once without items. Rejected at once with the first rejection; if
///   `limit` is below 1, with `PromiseError.badInput` and without calling `body`.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Items: Sequence, Next: Thenable>(
    fulfilled items: Items, concurrently limit: Int, _ body: @escaping (Items.Element) throws -> Next,
    file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Next.T]> {
    guard limit > 0 else { return rejectInvalidLimit("when", "(fulfilled:concurrently:)", limit, file, line) }
    var iterator = items.makeIterator()
    var values: [Next.T?] = []
    let all = ThrottledFanInCore(limit, code: .of(Follow<[Next.T]>.self)) {
        try iterator.next().map { try body($0).asPromise().core }
    } keep: { index, source in
        while values.count <= index { values.append(nil) }
        values[index] = .some(Source<Next.T>(source, isFulfilled: true).value)
    } complete: {
        $0.fulfill(values.map { $0! })
    }
    all.start()
    return Promise(all, of: "when", file, line)
}

@usableFromInline
func rejectInvalidLimit<Value>(
    _ operation: StaticString, _ form: String, _ limit: Int, _ file: StaticString, _ line: UInt
) -> Promise<Value> {
    let error = PromiseError.badInput("\(operation)\(form) with \(limit) at a time")
    return Promise(PromiseCore(error: error), of: operation, file, line)
}
