/// Settles as the first of `thenables` that settles, even if that is a rejection, and cancels the others, except those
/// that another handler waits for.
///
/// ```swift
/// race(fetch(url), after(.seconds(2)).then { Promise<Page>(error: PromiseError.timedOut) })
/// ```
///
/// If several have already settled, the first one in the list wins. The losers of such a race are cancelled by a job,
/// so that a handler can still be attached to them after the call. To let a loser continue, attach a handler to it. The
/// outcomes of the losers are not reported.
///
/// Cancelling the result cancels the thenables that no other handler waits for.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: a promise of the first outcome. It is rejected with the error of that outcome, or with
///   `PromiseError.badInput` if the list is empty.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<Each: Thenable>(
    _ thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Each.T> {
    guard !thenables.isEmpty else {
        let core = PromiseCore(error: PromiseError.badInput("race of an empty list"))
        return Promise(core.traced(root: "race", Promise<Each.T>.self, file, line))
    }
    let result = FanInCore(racing: Each.T.self, .first, thenables.count).wait(for: thenables)
    return Promise(result.traced(root: "race", Promise<Each.T>.self, file, line))
}

/// Settles as the first of `thenables` that settles, even if that is a rejection; see the form with an array of one
/// type.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: as the form with an array.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<Each: Thenable>(
    _ thenables: Each..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<Each.T> { race(thenables, file: file, line: line) }

/// Settles as the first of several promises and guarantees of one value type; see the form with an array of one type.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: as the form with an array of one type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func race<T>(
    _ thenables: [any Thenable<T>], file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> { race(promises(of: thenables), file: file, line: line) }

/// Settles as the first of several promises and guarantees of one value type; see the form with an array of one type.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: as the form with an array of one type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func race<T>(
    _ thenables: any Thenable<T>..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> { race(promises(of: thenables), file: file, line: line) }

/// Settles as the first of the guarantees that is fulfilled, and cancels the others, except those that another handler
/// waits for.
/// - Parameters:
///   - first: a guarantee.
///   - others: the guarantees that compete with it.
/// - Returns: a guarantee of the first value. A guarantee that is abandoned or cancelled does not count.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<T>(
    _ first: Guarantee<T>, _ others: Guarantee<T>..., file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<T> {
    let all = [first] + others
    let result = FanInCore(racing: T.self, .firstValue, all.count).wait(for: all)
    return Guarantee(result.traced(root: "race", Guarantee<T>.self, file, line))
}

/// Settles as the first of `thenables` that is fulfilled, and cancels the others, except those that another handler
/// waits for.
///
/// ```swift
/// race(fulfilled: mirrors.map { fetch($0) })
/// ```
///
/// Cancelling the result cancels the thenables that no other handler waits for.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: a promise of the first value. It is rejected
///   - with `PromiseError.noWinner` if all are rejected; it has their errors in the order of the list;
///   - with `PromiseError.cancelled` if all are rejected with errors that mean "cancelled";
///   - with `PromiseError.badInput` if the list is empty.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<Each: Thenable>(
    fulfilled thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Each.T> {
    guard !thenables.isEmpty else {
        let core = PromiseCore(error: PromiseError.badInput("race(fulfilled:) of an empty list"))
        return Promise(core.traced(root: "race", Promise<Each.T>.self, file, line))
    }
    let result = FanInCore(racing: Each.T.self, .firstFulfilled, thenables.count).wait(for: thenables)
    return Promise(result.traced(root: "race", Promise<Each.T>.self, file, line))
}

/// Settles as the first of `thenables` that is fulfilled; see the form with an array.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: as the form with an array.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<Each: Thenable>(
    fulfilled thenables: Each..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<Each.T> { race(fulfilled: thenables, file: file, line: line) }

/// Settles as the first of several promises and guarantees of one value type that is fulfilled; see the form with an
/// array of one type.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: as the form with an array of one type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func race<T>(
    fulfilled thenables: [any Thenable<T>], file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> { race(fulfilled: promises(of: thenables), file: file, line: line) }

/// Settles as the first of several promises and guarantees of one value type that is fulfilled; see the form with an
/// array of one type.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: as the form with an array of one type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func race<T>(
    fulfilled thenables: any Thenable<T>..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> { race(fulfilled: promises(of: thenables), file: file, line: line) }

extension FanInCore {
    @inlinable
    convenience init<Value>(racing type: Value.Type, _ rule: Rule, _ count: Int) {
        self.init(rule, count) { result, index in
            result.fulfill(result.value(at: index, as: Value.self))
        } code: {
            PromiseCore.perform(Follow<Value>.self, $0, $1)
        }
    }
}
