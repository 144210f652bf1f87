import Promises

// Forms of `when` that `Promises` spells differently.

/// `when(fulfilled: IteratorSequence(iterator), concurrently: limit) { $0 }`
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
public func when<Iterator: IteratorProtocol>(
    fulfilled iterator: Iterator, concurrently limit: Int, file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Iterator.Element.T]> where Iterator.Element: Thenable {
    when(fulfilled: IteratorSequence(iterator), concurrently: limit, { $0 }, file: file, line: line)
}

/// `when(fulfilled: IteratorSequence(iterator), concurrently: limit) { when(resolved: [$0]).map { $0[0] } }`
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
public func when<Iterator: IteratorProtocol>(
    resolved iterator: Iterator, concurrently limit: Int, file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Result<Iterator.Element.T, any Error>]> where Iterator.Element: Thenable {
    let outcome = { (one: Iterator.Element) in
        when(resolved: [one], file: file, line: line).map({ $0[0] }, file: file, line: line)
    }
    return when(fulfilled: IteratorSequence(iterator), concurrently: limit, outcome, file: file, line: line)
}

/// `when(resolved: thenables)`
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
public func when<Each: Thenable>(
    resolved thenables: Each..., file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<[Result<Each.T, any Error>]> { when(resolved: thenables, file: file, line: line) }

/// `when(fulfilled: thenables)`
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@_disfavoredOverload
public func when<Each: Thenable>(
    fulfilled thenables: Each..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> where Each.T == Void { when(fulfilled: thenables, file: file, line: line) }

/// `when(fulfilled:)` for promises of `Any`.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@_disfavoredOverload
public func when(
    fulfilled thenables: [any Thenable], file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Any]> {
    func erased<Each: Thenable>(_ thenable: Each) -> Promise<Any> {
        thenable.asPromise().map({ $0 as Any }, file: file, line: line)
    }
    return when(fulfilled: thenables.map { erased($0) }, file: file, line: line)
}

/// `when(fulfilled: when(fulfilled: a, b), when(fulfilled: c, d))`, as one tuple.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
public func when<A: Thenable, B: Thenable, C: Thenable, D: Thenable>(
    fulfilled a: A, _ b: B, _ c: C, _ d: D, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(A.T, B.T, C.T, D.T)> {
    let first = when(fulfilled: a, b, file: file, line: line)
    return when(fulfilled: first, c, d, file: file, line: line)
        .map({ ($0.0, $0.1, $1, $2) }, file: file, line: line)
}

/// `when(fulfilled: when(fulfilled: a, b, c), d, e)`, as one tuple.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
public func when<A: Thenable, B: Thenable, C: Thenable, D: Thenable, E: Thenable>(
    fulfilled a: A, _ b: B, _ c: C, _ d: D, _ e: E, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(A.T, B.T, C.T, D.T, E.T)> {
    let first = when(fulfilled: a, b, c, file: file, line: line)
    return when(fulfilled: first, d, e, file: file, line: line)
        .map({ ($0.0, $0.1, $0.2, $1, $2) }, file: file, line: line)
}

/// `when(guarantees: when(guarantees: a, b), c)`, as one tuple.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
public func when<A, B, C>(
    guarantees a: Guarantee<A>, _ b: Guarantee<B>, _ c: Guarantee<C>, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(A, B, C)> {
    let first = when(guarantees: a, b, file: file, line: line)
    return when(guarantees: first, c, file: file, line: line).map({ ($0.0, $0.1, $1) }, file: file, line: line)
}

/// `when(guarantees: when(guarantees: a, b), when(guarantees: c, d))`, as one tuple.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
public func when<A, B, C, D>(
    guarantees a: Guarantee<A>, _ b: Guarantee<B>, _ c: Guarantee<C>, _ d: Guarantee<D>, file: StaticString = #fileID,
    line: UInt = #line
) -> Guarantee<(A, B, C, D)> {
    let (first, last) = (when(guarantees: a, b), when(guarantees: c, d))
    return when(guarantees: first, last, file: file, line: line)
        .map({ ($0.0, $0.1, $1.0, $1.1) }, file: file, line: line)
}

/// `when(guarantees: when(guarantees: a, b, c), when(guarantees: d, e))`, as one tuple.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
public func when<A, B, C, D, E>(
    guarantees a: Guarantee<A>, _ b: Guarantee<B>, _ c: Guarantee<C>, _ d: Guarantee<D>, _ e: Guarantee<E>,
    file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(A, B, C, D, E)> {
    let (first, last) = (when(guarantees: a, b, c), when(guarantees: d, e))
    return when(guarantees: first, last, file: file, line: line)
        .map({ ($0.0, $0.1, $0.2, $1.0, $1.1) }, file: file, line: line)
}

/// `when(guarantees: guarantees).asVoid()`
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@_disfavoredOverload
public func when(
    guarantees: [Guarantee<Void>], file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<Void> {
    when(guarantees: guarantees, file: file, line: line).map({ (_: [Void]) in }, file: file, line: line)
}

/// `when(guarantees: guarantees).asVoid()`
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@_disfavoredOverload
public func when(
    guarantees: Guarantee<Void>..., file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<Void> { when(guarantees: guarantees, file: file, line: line) }
