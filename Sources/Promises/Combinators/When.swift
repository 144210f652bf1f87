/// Waits until all thenables are fulfilled and collects their values in the order of the sequence.
///
/// ```swift
/// when(fulfilled: urls.map { fetch($0) }).done { pages in print(pages.count) }
/// ```
///
/// After the first rejection, the other thenables continue, and their outcomes are not reported. Cancelling the result
/// cancels the thenables that no other handler waits for.
/// - Parameter thenables: the promises or guarantees. The sequence is iterated once, immediately.
/// - Returns: a promise of the values; without thenables it is fulfilled immediately. It is rejected immediately with
///   the error of the first rejection. If several thenables are already rejected, the first one in the sequence counts.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<Each: Sequence>(
    fulfilled thenables: Each, file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Each.Element.T]> where Each.Element: Thenable {
    // For an array, this is the array itself.
    let thenables = Array(thenables)
    guard !thenables.isEmpty else { return .value([]) }
    return Promise(FanInCore.values(of: thenables).traced(root: "when", Promise<[Each.Element.T]>.self, file, line))
}

/// Waits until all thenables are fulfilled; see the form with values.
/// - Parameter thenables: the promises or guarantees.
/// - Returns: a promise that is fulfilled with the last of them, and rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when<Each: Thenable>(
    fulfilled thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> where Each.T == Void {
    guard !thenables.isEmpty else { return .value }
    return Promise(FanInCore.end(of: thenables).traced(root: "when", Promise<Void>.self, file, line))
}

/// Waits until all promises and guarantees of `Void` are fulfilled; see the form with values.
/// - Parameter thenables: the promises and guarantees.
/// - Returns: a promise that is fulfilled with the last of them, and rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when(
    fulfilled thenables: [any Thenable<Void>], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> { when(fulfilled: promises(of: thenables), file: file, line: line) }

/// Waits until all promises and guarantees of `Void` are fulfilled; see the form with values.
/// - Parameter thenables: the promises and guarantees.
/// - Returns: a promise that is fulfilled with the last of them, and rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when(
    fulfilled thenables: any Thenable<Void>..., file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> { when(fulfilled: promises(of: thenables), file: file, line: line) }

/// Waits until all promises and guarantees of one value type are fulfilled; see the form with a sequence of one type.
/// - Parameter thenables: the promises and guarantees.
/// - Returns: a promise of the values in the order of the array, rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<T>(
    fulfilled thenables: [any Thenable<T>], file: StaticString = #fileID, line: UInt = #line
) -> Promise<[T]> { when(fulfilled: promises(of: thenables), file: file, line: line) }

/// Waits until all thenables of any types are fulfilled, and collects their values as `Any`: for a list that is made at
/// run time.
///
/// See also the form with a sequence of one type, and the form without an array, which preserves the types.
/// - Parameter thenables: the promises and guarantees.
/// - Returns: a promise of the values in the order of the array, rejected with the first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
@_disfavoredOverload
public func when(
    fulfilled thenables: [any Thenable], file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Any]> {
    guard !thenables.isEmpty else { return .value([]) }
    func value<Each: Thenable>(of thenable: Each) -> (FanInCore, Int) -> Any { { $0.value(at: $1, as: Each.T.self) } }
    let values = thenables.map { value(of: $0) }
    let result = FanInCore(.all, thenables.count) { result, _ in
        result.fulfill(values.enumerated().map { $1(result, $0) })
    } code: {
        PromiseCore.perform(Follow<[Any]>.self, $0, $1)
    }
    func add<Each: Thenable>(_ thenable: Each, _ index: Int) { result.add(thenable.asPromise().core, at: index) }
    for (index, thenable) in thenables.enumerated() { add(thenable, index) }
    result.seal()
    return Promise(result.traced(root: "when", Promise<[Any]>.self, file, line))
}

/// Waits until all thenables of any types are fulfilled, and combines their values into a tuple.
///
/// ```swift
/// when(fulfilled: user, avatar).done { user, avatar in … }
/// ```
///
/// The other thenables continue after a rejection. See the form with a sequence.
/// - Parameter thenable: the promises and guarantees.
/// - Returns: a promise of the values in the order of the arguments. It is rejected immediately with the error of the
///   first rejection.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func when<each Each: Thenable>(
    fulfilled thenable: repeat each Each, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(repeat (each Each).T)> {
    let result = FanInCore.tuple(of: repeat each thenable)
    return Promise(result.traced(root: "when", Promise<(repeat (each Each).T)>.self, file, line))
}

/// Converts promises and guarantees to one type.
@inlinable
func promises<T>(of thenables: [any Thenable<T>]) -> [Promise<T>] { thenables.map { $0.asPromise() } }

extension FanInCore {
    /// Collects the values of all thenables. The list must not be empty.
    @inlinable
    static func values<Each: Thenable>(of thenables: [Each]) -> FanInCore {
        FanInCore(.all, thenables.count) { result, _ in
            result.fulfill(result.values(as: Each.T.self))
        } code: {
            PromiseCore.perform(Follow<[Each.T]>.self, $0, $1)
        }.wait(for: thenables)
    }

    /// Waits until all thenables are fulfilled, and has no value. The list must not be empty.
    @inlinable
    static func end<Each: Thenable>(of thenables: [Each]) -> FanInCore {
        FanInCore(.all, thenables.count) { result, _ in
            result.fulfill(())
        } code: {
            PromiseCore.perform(Follow<Void>.self, $0, $1)
        }.wait(for: thenables)
    }

    /// Combines the values of all thenables into a tuple. Settled already if there are none.
    @inlinable
    static func tuple<each Each: Thenable>(of thenable: repeat each Each) -> FanInCore {
        let count = count(of: repeat each thenable)
        let complete = { (result: FanInCore) in
            var position = -1
            func next<Value>(_ type: Value.Type) -> Value {
                position += 1
                return result.value(at: position, as: type)
            }
            result.fulfill((repeat next((each Each).T.self)))
        }
        let result = FanInCore(.all, count) { result, _ in
            complete(result)
        } code: {
            PromiseCore.perform(Follow<(repeat (each Each).T)>.self, $0, $1)
        }
        if count == 0 { complete(result) }
        return result.wait(for: repeat each thenable)
    }

    @inlinable
    func wait<Each: Thenable>(for thenables: [Each]) -> FanInCore {
        for index in thenables.indices { add(thenables[index].asPromise().core, at: index) }
        seal()
        return self
    }

    /// Adds the thenables, whose number is `count`. They may have several types.
    @inlinable
    func wait<each Each: Thenable>(for thenable: repeat each Each) -> FanInCore {
        var index = 0
        for one in repeat each thenable {
            add(one.asPromise().core, at: index)
            index += 1
        }
        seal()
        return self
    }

    @inlinable
    static func count<each Each: Thenable>(of thenable: repeat each Each) -> Int {
        var count = 0
        for _ in repeat each thenable { count += 1 }
        return count
    }

    @inlinable
    func values<Value>(as type: Value.Type) -> [Value] {
        [Value](unsafeUninitializedCapacity: count) { values, size in
            for index in 0..<count { values.initializeElement(at: index, to: value(at: index, as: type)) }
            size = count
        }
    }
}
