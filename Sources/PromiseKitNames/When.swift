import Promises

// Overloads of `when` that `Promises` spells differently.

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
