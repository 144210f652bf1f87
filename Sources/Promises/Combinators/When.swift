/// Waits for all and collects their values in the order given; an empty list is fulfilled at once.
///
/// The first rejection rejects the result with that error at once; the others run on, and what becomes of them is
/// not reported. If several are rejected already, the first in the list counts. Cancelling the result cancels those that
/// nobody else waits for.
@inlinable
public func when<Each: Thenable>(
    fulfilled thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<[Each.T]> {
    guard !thenables.isEmpty else { return .value([]) }
    let result = Gathering(.all, thenables.count) { result, _ in
        result.fulfill(result.values(as: Each.T.self))
    } code: {
        Core.perform(Follow<[Each.T]>.self, $0, $1)
    }
    return Promise(result.wait(for: thenables).traced(root: "when", Promise<[Each.T]>.self, file, line))
}

/// Waits for all; see the form with values.
@inlinable
@_disfavoredOverload
public func when<Each: Thenable>(
    fulfilled thenables: [Each], file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> where Each.T == Void {
    guard !thenables.isEmpty else { return .value }
    let result = Gathering(.all, thenables.count) { result, _ in
        result.fulfill(())
    } code: {
        Core.perform(Follow<Void>.self, $0, $1)
    }
    return Promise(result.wait(for: thenables).traced(root: "when", Promise<Void>.self, file, line))
}

/// Waits for all, of whatever types, and gives their values as a tuple.
///
/// ```swift
/// when(fulfilled: user, avatar).done { user, avatar in … }
/// ```
///
/// The first rejection rejects the result at once; the others run on.
@inlinable
public func when<each Each: Thenable>(
    fulfilled thenable: repeat each Each, file: StaticString = #fileID, line: UInt = #line
) -> Promise<(repeat (each Each).T)> {
    var count = 0
    for _ in repeat each thenable { count += 1 }
    let complete = { (result: Gathering) in
        var position = -1
        func next<Value>(_ type: Value.Type) -> Value {
            position += 1
            return result.value(at: position, as: type)
        }
        result.fulfill((repeat next((each Each).T.self)))
    }
    let result = Gathering(.all, count) { result, _ in
        complete(result)
    } code: {
        Core.perform(Follow<(repeat (each Each).T)>.self, $0, $1)
    }
    if count == 0 { complete(result) }
    var index = 0
    for one in repeat each thenable {
        result.add(one.asPromise().core, at: index)
        index += 1
    }
    result.seal()
    return Promise(result.traced(root: "when", Promise<(repeat (each Each).T)>.self, file, line))
}

extension Gathering {
    @inlinable
    func wait<Each: Thenable>(for thenables: [Each]) -> Gathering {
        for index in thenables.indices { add(thenables[index].asPromise().core, at: index) }
        seal()
        return self
    }

    @inlinable
    func values<Value>(as type: Value.Type) -> [Value] {
        [Value](unsafeUninitializedCapacity: count) { values, size in
            for index in 0..<count { values.initializeElement(at: index, to: value(at: index, as: type)) }
            size = count
        }
    }
}
