// Two thenables have an overload without a parameter pack. The compiler (Swift 6.3) resolves a pack's result too late
// for a closure that does not take the tuple apart, as in `when(fulfilled: a, b).done { print($0.0) }`, and for a
// comparison with literals, and its error messages do not say so.

/// Waits until two thenables of any types are fulfilled, and combines their values into a tuple.
///
/// ```swift
/// when(fulfilled: user, avatar).done { user, avatar in … }
/// ```
///
/// After a rejection the other thenable continues.
/// - Returns: a promise of both values, rejected at once with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A: Thenable, B: Thenable>(
    fulfilled a: A, _ b: B, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(A.T, B.T)> { Promise(FanInCore.tuple(of: a, b), of: "when", file, line) }

/// Waits until any number of thenables of any types are fulfilled; see the overload for two.
///
/// Take the tuple apart in the closure, `{ a, b, c in … }`, or continue the chain in another statement.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<each Each: Thenable>(
    fulfilled thenable: repeat each Each, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(repeat (each Each).T)> { Promise(FanInCore.tuple(of: repeat each thenable), of: "when", file, line) }

/// Waits until any number of guarantees are fulfilled, and combines their values into a tuple.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<each Value>(
    guarantees guarantee: repeat Guarantee<each Value>, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(repeat each Value)> {
    Guarantee(FanInCore.tuple(of: repeat each guarantee), of: "when", file, line)
}

/// Waits until two thenables of any types have settled, and combines their outcomes into a tuple.
///
/// ```swift
/// when(resolved: user, avatar).done { user, avatar in
///     show(try user.get(), (try? avatar.get()) ?? placeholder)
/// }
/// ```
///
/// - Returns: a guarantee of both outcomes. The errors count as handled.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when<A: Thenable, B: Thenable>(
    resolved a: A, _ b: B, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(Result<A.T, any Error>, Result<B.T, any Error>)> {
    let both = FanInCore(.each, 2, as: (Result<A.T, any Error>, Result<B.T, any Error>).self) { both, _ in
        both.fulfill((both.result(at: 0, as: A.T.self), both.result(at: 1, as: B.T.self)))
    }
    return Guarantee(both.wait(for: a, b), of: "when", file, line)
}
