/// A `LinkedList` in a dictionary. Removes values by number in constant time.
package struct LinkedOrder<Value> {
    private struct Entry {
        let value: Value
        var previous: Int?
        var next: Int?
    }

    private var entries: [Int: Entry] = [:]
    private var first: Int?
    private var last: Int?

    package init() {}

    package var count: Int { entries.count }
    package var isEmpty: Bool { entries.isEmpty }
    var oldest: Value? { first.flatMap { entries[$0]?.value } }

    /// Adds `value` at the end. No other member may have its number.
    package mutating func append(_ value: Value, _ number: Int) {
        entries[number] = Entry(value: value, previous: last)
        if let last { entries[last]?.next = number } else { first = number }
        last = number
    }

    @discardableResult
    package mutating func remove(_ number: Int) -> Value? {
        guard let removed = entries.removeValue(forKey: number) else { return nil }
        if let previous = removed.previous { entries[previous]?.next = removed.next } else { first = removed.next }
        if let next = removed.next { entries[next]?.previous = removed.previous } else { last = removed.previous }
        return removed.value
    }

    package mutating func popFirst() -> Value? { first.flatMap { remove($0) } }
    package mutating func popLast() -> Value? { last.flatMap { remove($0) } }
}

extension LinkedOrder {
    /// The value must retain the promise.
    package mutating func append(_ value: Value, of promise: PromiseCore) {
        append(value, Int(bitPattern: promise.address))
    }

    @discardableResult
    package mutating func remove(of promise: PromiseCore) -> Value? { remove(Int(bitPattern: promise.address)) }
}
