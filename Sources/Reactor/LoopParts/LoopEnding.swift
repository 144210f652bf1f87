/// Callbacks for the loop's end, before other threads learn of it, and values that live until then.
///
/// Invariant: changed on the loop's thread only. Removed elements are called or released after the change, since they
/// may add or remove others.
struct LoopEnding {
    private var bodies = NumberedList<() -> Void>()
    /// The values of each `LoopLocal` by number. Unfinished async handlers may retain a value longer.
    private var locals: [Int: LoopLocalValue] = [:]

    mutating func add(_ body: @escaping () -> Void) -> Int { bodies.add(body) }

    mutating func take(_ id: Int) -> (() -> Void)? { bodies.remove(id) }

    /// In the order of their addition.
    var ids: [Int] { bodies.all.map(\.number) }

    func local(_ number: Int) -> Unmanaged<LoopLocalValue>? { locals[number].map { .passUnretained($0) } }

    mutating func keep(_ value: LoopLocalValue, _ number: Int) { locals[number] = value }

    mutating func takeLocal(_ number: Int) -> LoopLocalValue? { locals.removeValue(forKey: number) }

    /// Takes the last value first, since it may use an earlier one.
    mutating func takeLastLocal() -> LoopLocalValue? {
        locals.keys.max().flatMap { locals.removeValue(forKey: $0) }
    }
}

/// A `LoopLocal`'s value on one loop. On the loop's thread only.
@usableFromInline
package class LoopLocalValue {}
