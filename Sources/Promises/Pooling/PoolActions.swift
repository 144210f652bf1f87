/// The actions of a pool that have not been executed, in their order. One at a time, as usual, takes no queue.
struct PoolActions {
    private var first: PoolState.Action?
    private var rest = IndexedQueue<PoolState.Action>()

    mutating func append(_ action: PoolState.Action) { if first == nil { first = action } else { rest.append(action) } }

    mutating func popFirst() -> PoolState.Action? {
        guard let action = first.take() else { return nil }
        if !rest.isEmpty { first = rest.removeFirst() }
        return action
    }
}
