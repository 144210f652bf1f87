/// Callbacks for the end of a loop, which run on its thread before other threads learn of the end, and the values that
/// live until then.
///
/// Invariant: changed on the loop's thread only. Removed elements are called or released afterwards, since that may add
/// or remove others.
struct LoopEnding {
    private var bodies = NumberedList<() -> Void>()
    /// The values of each `LoopLocal` on this loop, by its number. Unfinished async handlers may retain one for longer.
    private var locals: [Int: LoopLocalValue] = [:]

    mutating func add(_ body: @escaping () -> Void) -> Int { bodies.add(body) }

    mutating func take(_ id: Int) -> (() -> Void)? { bodies.remove(id) }

    /// The identifiers of the bodies, in the order in which they were added.
    var ids: [Int] { bodies.all.map(\.number) }

    func local(_ number: Int) -> Unmanaged<LoopLocalValue>? { locals[number].map { .passUnretained($0) } }

    mutating func keep(_ value: LoopLocalValue, _ number: Int) { locals[number] = value }

    mutating func takeLocal(_ number: Int) -> LoopLocalValue? { locals.removeValue(forKey: number) }

    /// The last number first: a later value may use an earlier one.
    mutating func takeLastLocal() -> LoopLocalValue? {
        locals.keys.max().flatMap { locals.removeValue(forKey: $0) }
    }
}

/// The value of a `LoopLocal` on one loop. Accessed on the loop's thread only.
@usableFromInline
package class LoopLocalValue {}
