/// Waits until all thenables have settled, and collects their outcomes in the order of the sequence.
///
/// ```swift
/// when(resolved: uploads).done { outcomes in
///     for case .failure(let error) in outcomes { print(error) }
/// }
/// ```
///
/// Cancelling the result cancels the thenables that no other handler waits for.
/// - Parameter thenables: the promises or guarantees. The sequence is iterated once, immediately.
/// - Returns: a guarantee of the outcomes; without thenables it is fulfilled immediately. The errors are part of its
///   value, and count as handled.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Each: Sequence>(
    resolved thenables: Each, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<[Result<Each.Element.T, any Error>]> where Each.Element: Thenable {
    let thenables = Array(thenables)
    guard !thenables.isEmpty else { return .value([]) }
    let result = FanInCore(.each, thenables.count) { result, _ in
        result.fulfill(result.results(as: Each.Element.T.self))
    } code: {
        PromiseCore.perform(Follow<[Result<Each.Element.T, any Error>]>.self, $0, $1)
    }
    let core = result.wait(for: thenables)
    return Guarantee(core.traced(root: "when", Guarantee<[Result<Each.Element.T, any Error>]>.self, file, line))
}

/// Waits until all thenables have settled; see the form with a sequence.
/// - Parameter thenables: the promises or guarantees.
/// - Returns: a guarantee of the outcomes in the order of the arguments.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Each: Thenable>(
    resolved thenables: Each..., file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<[Result<Each.T, any Error>]> { when(resolved: thenables, file: file, line: line) }

/// Waits until all promises and guarantees of one value type have settled; see the form with a sequence of one type.
/// - Parameter thenables: the promises and guarantees.
/// - Returns: a guarantee of the outcomes in the order of the array.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when<T>(
    resolved thenables: [any Thenable<T>], file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<[Result<T, any Error>]> { when(resolved: promises(of: thenables), file: file, line: line) }

/// Waits until all thenables of any types have settled, and combines their outcomes into a tuple.
///
/// ```swift
/// when(resolved: user, avatar).done { user, avatar in
///     show(try user.get(), (try? avatar.get()) ?? placeholder)
/// }
/// ```
///
/// Several thenables of one type give an array, unless the context requires a tuple, as a closure with several
/// parameters does.
/// - Parameter thenable: the promises and guarantees.
/// - Returns: a guarantee of the outcomes in the order of the arguments.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when<each Each: Thenable>(
    resolved thenable: repeat each Each, file: StaticString = #fileID, line: UInt = #line
) -> Guarantee<(repeat Result<(each Each).T, any Error>)> {
    let count = FanInCore.count(of: repeat each thenable)
    let complete = { (result: FanInCore) in
        var position = -1
        func next<Value>(_ type: Value.Type) -> Result<Value, any Error> {
            position += 1
            return result.result(at: position, as: type)
        }
        result.fulfill((repeat next((each Each).T.self)))
    }
    let result = FanInCore(.each, count) { result, _ in
        complete(result)
    } code: {
        PromiseCore.perform(Follow<(repeat Result<(each Each).T, any Error>)>.self, $0, $1)
    }
    if count == 0 { complete(result) }
    let core = result.wait(for: repeat each thenable)
    return Guarantee(
        core.traced(root: "when", Guarantee<(repeat Result<(each Each).T, any Error>)>.self, file, line))
}

/// Waits until all thenables have settled, collects their outcomes in the order of the sequence, and rejects if every
/// one is rejected.
///
/// Cancelling the result cancels the thenables that no other handler waits for.
/// - Parameter thenables: the promises or guarantees. The sequence is iterated once, immediately.
/// - Returns: a promise of the outcomes; without thenables it is fulfilled immediately. If all are rejected, it is
///   rejected with `PromiseError.noWinner`, which has all errors, or with `PromiseError.cancelled` if all errors mean
///   "cancelled".
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Each: Sequence>(
    notAllRejected thenables: Each, file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Result<Each.Element.T, any Error>]> where Each.Element: Thenable {
    let thenables = Array(thenables)
    guard !thenables.isEmpty else { return .value([]) }
    let result = FanInCore(.each, thenables.count) { result, _ in
        let results = result.results(as: Each.Element.T.self)
        let errors = results.compactMap { if case .failure(let error) = $0 { error } else { nil } }
        if errors.count < results.count {
            result.fulfill(results)
        } else {
            result.reject(PromiseError.allRejected(errors))
        }
    } code: {
        PromiseCore.perform(Follow<[Result<Each.Element.T, any Error>]>.self, $0, $1)
    }
    let core = result.wait(for: thenables)
    return Promise(core.traced(root: "when", Promise<[Result<Each.Element.T, any Error>]>.self, file, line))
}

/// Waits until all thenables have settled, and rejects if every one is rejected; see the form with a sequence.
/// - Parameter thenables: the promises or guarantees.
/// - Returns: as the form with a sequence.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Each: Thenable>(
    notAllRejected thenables: Each..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Result<Each.T, any Error>]> { when(notAllRejected: thenables, file: file, line: line) }

/// Waits until all promises and guarantees of one value type have settled, and rejects if every one is rejected; see
/// the form with a sequence of one type.
/// - Parameter thenables: the promises and guarantees.
/// - Returns: as the form with a sequence of one type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when<T>(
    notAllRejected thenables: [any Thenable<T>], file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Result<T, any Error>]> { when(notAllRejected: promises(of: thenables), file: file, line: line) }

/// Waits until all promises and guarantees of one value type have settled, and rejects if every one is rejected; see
/// the form with a sequence of one type.
/// - Parameter thenables: the promises and guarantees.
/// - Returns: as the form with a sequence of one type.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when<T>(
    notAllRejected thenables: any Thenable<T>..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Result<T, any Error>]> { when(notAllRejected: promises(of: thenables), file: file, line: line) }

extension FanInCore {
    @inlinable
    func results<Value>(as type: Value.Type) -> [Result<Value, any Error>] {
        (0..<count).map { result(at: $0, as: type) }
    }
}
