/// Callbacks for the end of a loop, which run on its thread before other threads learn of the end, and the values that
/// live until then.
///
/// Invariant: changed on the loop's thread only. Removed elements are called or released afterwards, since that may add
/// or remove others.
struct LoopEnding {
    private var bodies = NumberedList<() -> Void>()
    /// The values of each `LoopLocal` on this loop, in the order of their numbers. Unfinished async handlers may retain
    /// one for longer.
    private var locals: ContiguousArray<(number: Int, value: LoopLocalValue)> = []

    mutating func add(_ body: @escaping () -> Void) -> Int { bodies.add(body) }

    mutating func take(_ id: Int) -> (() -> Void)? { bodies.remove(id) }

    /// The identifiers of the bodies, in the order in which they were added.
    var ids: [Int] { bodies.all.map(\.number) }

    func local(_ number: Int) -> Unmanaged<LoopLocalValue>? {
        let (place, isThere) = place(of: number)
        return isThere ? .passUnretained(locals[place].value) : nil
    }

    mutating func keep(_ value: LoopLocalValue, _ number: Int) {
        locals.insert((number, value), at: place(of: number).place)
    }

    mutating func takeLocal(_ number: Int) -> LoopLocalValue? {
        let (place, isThere) = place(of: number)
        return isThere ? locals.remove(at: place).value : nil
    }

    /// The last number first: a later value may use an earlier one.
    mutating func takeLastLocal() -> LoopLocalValue? { locals.popLast()?.value }

    /// The index of that number, or of the first one after it.
    private func place(of number: Int) -> (place: Int, isThere: Bool) {
        var (first, end) = (0, locals.count)
        while first < end {
            let middle = (first + end) / 2
            if locals[middle].number == number { return (middle, true) }
            if locals[middle].number < number { first = middle + 1 } else { end = middle }
        }
        return (first, false)
    }
}

/// The value of a `LoopLocal` on one loop. Accessed on the loop's thread only.
@usableFromInline
package class LoopLocalValue {}
