/// Waits for all and collects their values in the order given; an empty list is fulfilled at once.
///
/// The first rejection rejects the result with that error at once; the others run on, and what becomes of them is
/// not reported. If several are rejected already, the first in the list counts.
public func when<Each: Thenable>(fulfilled thenables: [Each]) -> Promise<[Each.T]> {
    guard !thenables.isEmpty else { return .value([]) }
    let gathering = Gathering([Each.T].self, thenables.count)
    for (index, thenable) in thenables.enumerated() {
        gathering.wait(for: thenable, at: index) { gathering in
            (0..<gathering.count).map { gathering.value(at: $0, as: Each.T.self) }
        }
    }
    return Promise(gathering.core)
}

/// Waits for all; see the form with values.
@_disfavoredOverload
public func when<Each: Thenable>(fulfilled thenables: [Each]) -> Promise<Void> where Each.T == Void {
    guard !thenables.isEmpty else { return .value }
    let gathering = Gathering(Void.self, thenables.count)
    for (index, thenable) in thenables.enumerated() { gathering.wait(for: thenable, at: index) { _ in } }
    return Promise(gathering.core)
}

/// Waits for all, of whatever types, and gives their values as a tuple.
///
/// ```swift
/// when(fulfilled: user, avatar).done { user, avatar in … }
/// ```
///
/// The first rejection rejects the result at once; the others run on.
public func when<each Each: Thenable>(fulfilled thenable: repeat each Each) -> Promise<(repeat (each Each).T)> {
    var count = 0
    for _ in repeat each thenable { count += 1 }
    let gathering = Gathering((repeat (each Each).T).self, count)
    let finish = { (gathering: Gathering) in
        var position = -1
        func value<Value>(_ type: Value.Type) -> Value {
            position += 1
            return gathering.value(at: position, as: type)
        }
        return (repeat value((each Each).T.self))
    }
    if count == 0 { gathering.core.fulfill(finish(gathering)) }
    var index = 0
    for one in repeat each thenable {
        gathering.wait(for: one, at: index, finish)
        index += 1
    }
    return Promise(gathering.core)
}

/// The sources that a `when` waits for, as they settle. Used on the thread of the call only, wherever the sources are
/// settled, so that values which must not cross threads do not.
private final class Gathering {
    let core: Core
    let count: Int
    private var left: Int
    private let sources: UnsafeMutablePointer<Core?>

    init<Value>(_ type: Value.Type, _ count: Int) {
        core = Core(root: type)
        self.count = count
        left = count
        sources = .allocate(capacity: count)
        sources.initialize(repeating: nil, count: count)
    }

    deinit {
        sources.deinitialize(count: count)
        sources.deallocate()
    }

    func value<Value>(at index: Int, as type: Value.Type) -> Value { sources[index]!.value(as: type) }

    func wait<Each: Thenable, Value>(
        for thenable: Each, at index: Int, _ finish: @escaping (Gathering) -> Value
    ) {
        thenable.asPromise().core.attach(Core(inlineAtHome: Gather<Each.T, Value>(self, index, finish)))
    }

    /// Answers whether this was the last.
    func fill(_ index: Int, _ source: Core) -> Bool {
        sources[index] = source
        left -= 1
        return left == 0
    }
}

/// One source's waiter.
private struct Gather<T, Value>: Operation {
    typealias Input = T
    typealias Output = Void
    let gathering: Gathering
    let index: Int
    let finish: (Gathering) -> Value

    init(_ gathering: Gathering, _ index: Int, _ finish: @escaping (Gathering) -> Value) {
        self.gathering = gathering
        self.index = index
        self.finish = finish
    }

    consuming func run(_ source: Source<T>, _ core: Core) {
        let result = gathering.core
        if source.isFulfilled {
            if gathering.fill(index, source.core), result.claim() { result.fulfill(finish(gathering)) }
        } else if result.claim() {
            result.retain()
            result.finish(rejectedAs: source.core)
        }
        core.finish(())
    }
}
