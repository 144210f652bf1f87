extension FanInCore {
    @inlinable
    convenience init<Value>(
        _ rule: Rule, _ count: Int, as type: Value.Type, complete: @escaping (FanInCore, Int) -> Void
    ) {
        self.init(rule, count, complete: complete, code: .of(Follow<Value>.self))
    }

    @inlinable
    convenience init<Each: Thenable, Value>(
        _ rule: Rule, _ thenables: [Each], as type: Value.Type, complete: @escaping (FanInCore, Int) -> Void
    ) {
        self.init(rule, thenables.count, as: type, complete: complete)
        for index in thenables.indices { add(thenables[index].asPromise().core, at: index) }
        seal()
    }

    @inlinable
    static func values<Each: Thenable>(of thenables: [Each]) -> FanInCore {
        FanInCore(.all, thenables, as: [Each.T].self) { all, _ in all.fulfill(all.values(as: Each.T.self)) }
    }

    @inlinable
    static func tuple<each Each: Thenable>(of thenable: repeat each Each) -> FanInCore {
        var count = 0
        for _ in repeat each thenable { count += 1 }
        let all = FanInCore(.all, count, as: (repeat (each Each).T).self) { all, _ in
            var position = -1
            func next<Value>(_ type: Value.Type) -> Value {
                position += 1
                return all.value(at: position, as: type)
            }
            all.fulfill((repeat next((each Each).T.self)))
        }
        return all.wait(for: repeat each thenable)
    }

    /// Adds `count` thenables. Their types may differ.
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
    func values<Value>(as type: Value.Type) -> [Value] {
        [Value](unsafeUninitializedCapacity: count) { values, size in
            for index in 0..<count { values.initializeElement(at: index, to: value(at: index, as: type)) }
            size = count
        }
    }

    @inlinable
    func results<Value>(as type: Value.Type) -> [Result<Value, any Error>] {
        (0..<count).map { result(at: $0, as: type) }
    }
}

extension Promise {
    @inlinable
    init(_ core: PromiseCore, of combinator: StaticString, _ file: StaticString, _ line: UInt) {
        self.init(core.traced(root: combinator, Promise<T>.self, file, line))
    }
}

extension Guarantee {
    @inlinable
    init(_ core: PromiseCore, of combinator: StaticString, _ file: StaticString, _ line: UInt) {
        self.init(core.traced(root: combinator, Guarantee<T>.self, file, line))
    }
}
