/// Settles with the outcome of the first of `thenables` that settles, even a rejection. Cancels the others, except
/// those that another handler waits for.
///
/// ```swift
/// race(fetch(url), after(.seconds(2)).then { Promise<Page>(error: PromiseError.timedOut) })
/// ```
///
/// If several have already settled, the first in the list wins. A job then cancels the losers, so that a handler can
/// still be attached to them after the call. To let a loser continue, attach a handler to it. The losers' outcomes are
/// not reported.
///
/// Cancelling the result cancels the thenables that no other handler waits for.
/// - Parameter thenables: the competitors; at least one.
/// - Returns: a promise of the first outcome. Rejected with `PromiseError.badInput` if the list is empty.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<Each: Thenable>(
    _ thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Each.T> { Promise(FanInCore.race(thenables, .first), of: "race", file, line) }

/// Overload for promises and guarantees with one value type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func race<T>(
    _ thenables: any Thenable<T>..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<T> { race(thenables.map { $0.asPromise() }, file: file, line: line) }

/// Settles with the value of the first guarantee that is fulfilled. Cancels the others, except those that another
/// handler waits for. An abandoned or cancelled guarantee does not count.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<T>(
    _ first: Guarantee<T>, _ others: Guarantee<T>..., file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<T> { Guarantee(FanInCore.race([first] + others, .firstValue), of: "race", file, line) }

/// Settles with the value of the first of `thenables` that is fulfilled. Cancels the others, except those that another
/// handler waits for.
///
/// ```swift
/// race(fulfilled: mirrors.map { fetch($0) })
/// ```
///
/// Cancelling the result cancels the thenables that no other handler waits for.
/// - Returns: a promise of the first value. It is rejected
///   - with `PromiseError.noWinner`, which has the errors in the order of the list, if all are rejected;
///   - with `PromiseError.cancelled` if all are rejected with errors that mean "cancelled";
///   - with `PromiseError.badInput` if the list is empty.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func race<Each: Thenable>(
    fulfilled thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Each.T> { Promise(FanInCore.race(thenables, .firstFulfilled), of: "race", file, line) }

extension FanInCore {
    @inlinable
    static func race<Each: Thenable>(_ thenables: [Each], _ rule: Rule) -> PromiseCore {
        guard !thenables.isEmpty else {
            let call = rule == .first ? "race" : "race(fulfilled:)"
            return PromiseCore(error: PromiseError.badInput("\(call) of an empty list"))
        }
        return FanInCore(rule, thenables, as: Each.T.self) { race, winner in
            race.fulfill(race.value(at: winner, as: Each.T.self))
        }
    }
}
