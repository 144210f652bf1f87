/// What the end of a loop does on the loop's own thread, before other threads learn of the end, and the values that
/// live until then.
///
/// Invariant: changed on the loop's thread only. What is taken out is released or called afterwards, since it may add
/// to this or take out of it.
struct LoopEnding {
    private var bodies: [Int: () -> Void] = [:]
    private var last = 0
    /// The values of each `LoopLocal` on this loop, by its number. Unfinished async handlers may retain one further.
    private var locals: [Int: LoopLocalValue] = [:]
    /// The numbers of the values that the end has yet to release, ascending.
    private var unreleased: [Int] = []

    mutating func add(_ body: @escaping () -> Void) -> Int {
        last += 1
        bodies[last] = body
        return last
    }

    mutating func take(_ id: Int) -> (() -> Void)? { bodies.removeValue(forKey: id) }

    /// The identifiers of the bodies, in the order in which they were added.
    var ids: [Int] { bodies.keys.sorted() }

    func local(_ number: Int) -> LoopLocalValue? { locals[number] }

    mutating func keep(_ value: LoopLocalValue, _ number: Int) { locals[number] = value }

    mutating func takeLocal(_ number: Int) -> LoopLocalValue? { locals.removeValue(forKey: number) }

    /// The end begins to release the values. No further value is kept.
    mutating func beginReleasingLocals() { unreleased = locals.keys.sorted() }

    /// The last number first, since a later value may have been made of an earlier one.
    mutating func takeLastLocal() -> LoopLocalValue? {
        while let number = unreleased.popLast() {
            // The end of another value may have released it.
            if let value = locals.removeValue(forKey: number) { return value }
        }
        return nil
    }
}

/// The value of a `LoopLocal` on one loop. Accessed on the loop's thread only.
class LoopLocalValue {}
