/// Waits until all guarantees are fulfilled and collects their values in the order of the list.
///
/// Cancelling the result cancels the guarantees that no other handler waits for.
/// - Parameter guarantees: the guarantees.
/// - Returns: a guarantee of the values; without guarantees it is fulfilled immediately. If one of them is abandoned or
///   cancelled, the result is never fulfilled; seen as a promise, it is rejected with that error.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<T>(
    guarantees: [Guarantee<T>], file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<[T]> {
    guard !guarantees.isEmpty else { return .value([]) }
    return Guarantee(FanInCore.values(of: guarantees).traced(root: "when", Guarantee<[T]>.self, file, line))
}

/// Waits until all guarantees are fulfilled; see the form with values.
/// - Parameter guarantees: the guarantees.
/// - Returns: a guarantee that is fulfilled with the last of them.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when(
    guarantees: [Guarantee<Void>], file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<Void> {
    guard !guarantees.isEmpty else { return .value }
    return Guarantee(FanInCore.end(of: guarantees).traced(root: "when", Guarantee<Void>.self, file, line))
}

/// Waits until all guarantees are fulfilled; see the form with values.
/// - Parameter guarantees: the guarantees.
/// - Returns: a guarantee that is fulfilled with the last of them.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when(
    guarantees: Guarantee<Void>..., file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<Void> { when(guarantees: guarantees, file: file, line: line) }

/// Waits until all guarantees of any types are fulfilled, and combines their values into a tuple; see the form with an
/// array.
/// - Parameter guarantee: the guarantees.
/// - Returns: a guarantee of the values in the order of the arguments.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<each T>(
    guarantees guarantee: repeat Guarantee<each T>, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(repeat each T)> {
    let result = FanInCore.tuple(of: repeat each guarantee)
    return Guarantee(result.traced(root: "when", Guarantee<(repeat each T)>.self, file, line))
}
