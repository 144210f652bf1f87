// The types of the forms of `when` for any number of thenables contain a parameter pack, which the compiler (Swift 6.3)
// resolves too late for some expressions: in `hang(when(fulfilled: a, b)) == ([1], [2])` with arrays of bytes it takes
// the literals for arrays of `Int`, and reports an error. The forms here, for the usual numbers of thenables, have no
// pack and behave identically. Outcomes cannot be compared, so `when(resolved:)` needs no such forms.

/// Waits for two thenables of any types; see the form for any number.
/// - Parameters:
///   - a: a promise or guarantee.
///   - b: the second one.
/// - Returns: a promise of both values; rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A: Thenable, B: Thenable>(
    fulfilled a: A, _ b: B, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(A.T, B.T)> { whenAll(a, b, file: file, line: line) }

/// Waits for three thenables of any types; see the form for any number.
/// - Parameters:
///   - a: a promise or guarantee.
///   - b: the second one.
///   - c: the third one.
/// - Returns: a promise of the three values; rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A: Thenable, B: Thenable, C: Thenable>(
    fulfilled a: A, _ b: B, _ c: C, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(A.T, B.T, C.T)> { whenAll(a, b, c, file: file, line: line) }

/// Waits for four thenables of any types; see the form for any number.
/// - Parameters:
///   - a: a promise or guarantee.
///   - b: the second one.
///   - c: the third one.
///   - d: the fourth one.
/// - Returns: a promise of the four values; rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A: Thenable, B: Thenable, C: Thenable, D: Thenable>(
    fulfilled a: A, _ b: B, _ c: C, _ d: D, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(A.T, B.T, C.T, D.T)> { whenAll(a, b, c, d, file: file, line: line) }

/// Waits for five thenables of any types; see the form for any number.
/// - Parameters:
///   - a: a promise or guarantee.
///   - b: the second one.
///   - c: the third one.
///   - d: the fourth one.
///   - e: the fifth one.
/// - Returns: a promise of the five values; rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A: Thenable, B: Thenable, C: Thenable, D: Thenable, E: Thenable>(
    fulfilled a: A, _ b: B, _ c: C, _ d: D, _ e: E, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(A.T, B.T, C.T, D.T, E.T)> { whenAll(a, b, c, d, e, file: file, line: line) }

/// Waits for two guarantees of any types; see the form for any number.
/// - Parameters:
///   - a: a guarantee.
///   - b: the second one.
/// - Returns: a guarantee of both values.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A, B>(
    guarantees a: Guarantee<A>, _ b: Guarantee<B>, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(A, B)> { whenAllGuarantees(a, b, file: file, line: line) }

/// Waits for three guarantees of any types; see the form for any number.
/// - Parameters:
///   - a: a guarantee.
///   - b: the second one.
///   - c: the third one.
/// - Returns: a guarantee of the three values.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A, B, C>(
    guarantees a: Guarantee<A>, _ b: Guarantee<B>, _ c: Guarantee<C>, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(A, B, C)> { whenAllGuarantees(a, b, c, file: file, line: line) }

/// Waits for four guarantees of any types; see the form for any number.
/// - Parameters:
///   - a: a guarantee.
///   - b: the second one.
///   - c: the third one.
///   - d: the fourth one.
/// - Returns: a guarantee of the four values.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A, B, C, D>(
    guarantees a: Guarantee<A>, _ b: Guarantee<B>, _ c: Guarantee<C>, _ d: Guarantee<D>, file: StaticString = #fileID,
    line: UInt = #line
) -> Guarantee<(A, B, C, D)> { whenAllGuarantees(a, b, c, d, file: file, line: line) }

/// Waits for five guarantees of any types; see the form for any number.
/// - Parameters:
///   - a: a guarantee.
///   - b: the second one.
///   - c: the third one.
///   - d: the fourth one.
///   - e: the fifth one.
/// - Returns: a guarantee of the five values.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<A, B, C, D, E>(
    guarantees a: Guarantee<A>, _ b: Guarantee<B>, _ c: Guarantee<C>, _ d: Guarantee<D>, _ e: Guarantee<E>,
    file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(A, B, C, D, E)> { whenAllGuarantees(a, b, c, d, e, file: file, line: line) }

/// Calls the form of `when(fulfilled:)` for any number. Here no other form matches.
@inlinable
func whenAll<each Each: Thenable>(
    _ one: repeat each Each, file: StaticString, line: UInt
) -> Promise<(repeat (each Each).T)> { when(fulfilled: repeat each one, file: file, line: line) }

/// Calls the form of `when(guarantees:)` for any number. Here no other form matches.
@inlinable
func whenAllGuarantees<each T>(
    _ one: repeat Guarantee<each T>, file: StaticString, line: UInt
) -> Guarantee<(repeat each T)> { when(guarantees: repeat each one, file: file, line: line) }
