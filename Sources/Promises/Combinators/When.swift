/// Waits until all thenables are fulfilled and collects their values in order.
///
/// ```swift
/// when(fulfilled: urls.map { fetch($0) }).done { pages in print(pages.count) }
/// ```
///
/// After the first rejection the other thenables continue, and their outcomes are not reported. Cancelling the result
/// cancels the thenables that no other handler waits for.
/// - Parameter thenables: iterated once, at once.
/// - Returns: a promise of the values, fulfilled at once without thenables. Rejected at once with the first rejection.
///   Of several rejected thenables, the first in the sequence counts.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Each: Sequence>(
    fulfilled thenables: Each, file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Each.Element.T]> where Each.Element: Thenable {
    Promise(FanInCore.values(of: Array(thenables)), of: "when", file, line)
}

/// Overload for thenables without values.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when<Each: Thenable>(
    fulfilled thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> where Each.T == Void {
    let all = FanInCore(.all, thenables, as: Void.self) { all, _ in all.fulfill(()) }
    return Promise(all, of: "when", file, line)
}

/// Overload for promises and guarantees with one value type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<T>(
    fulfilled thenables: [any Thenable<T>], file: StaticString = #fileID, line: UInt = #line
) -> Promise<[T]> { when(fulfilled: thenables.map { $0.asPromise() }, file: file, line: line) }

/// Waits until all guarantees are fulfilled and collects their values in order.
///
/// Cancelling the result cancels the guarantees that no other handler waits for.
/// - Returns: a guarantee of the values, fulfilled at once without guarantees. If one of the guarantees is abandoned or
///   cancelled, the result is never fulfilled; as a promise, it is rejected with that error.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<T>(
    guarantees: [Guarantee<T>], file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<[T]> {
    Guarantee(FanInCore.values(of: guarantees), of: "when", file, line)
}

/// Waits until all thenables have settled, and collects their outcomes in order.
///
/// ```swift
/// when(resolved: uploads).done { outcomes in
///     for case .failure(let error) in outcomes { print(error) }
/// }
/// ```
///
/// Cancelling the result cancels the thenables that no other handler waits for.
/// - Returns: a guarantee of the outcomes, fulfilled at once without thenables. The errors count as handled.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Each: Sequence>(
    resolved thenables: Each, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<[Result<Each.Element.T, any Error>]> where Each.Element: Thenable {
    let all = FanInCore(.each, Array(thenables), as: [Result<Each.Element.T, any Error>].self) { all, _ in
        all.fulfill(all.results(as: Each.Element.T.self))
    }
    return Guarantee(all, of: "when", file, line)
}
