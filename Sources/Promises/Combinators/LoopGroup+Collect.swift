import Reactor

extension LoopGroup {
    /// Runs `body` on each loop, as a job, and collects the results in the order of the loops.
    ///
    /// ```swift
    /// let turns = group.collect { EventLoop.current.metrics.turns }
    ///     .map { answers in answers.compactMap { try? $0.get() }.reduce(0, +) }
    /// ```
    ///
    /// May be called on any thread, and an async function may await the value. This thread's loop counts the call as
    /// external work until all loops have answered.
    /// - Returns: a guarantee of one result per loop; `DispatchError.loopEnded` for a loop that ends before it answers.
    public func collect<Value: Sendable>(
        _ body: @escaping @Sendable () -> Value
    ) -> Guarantee<[Result<Value, DispatchError>]> { collect { (_: Int) in body() } }

    /// Like `collect(_:)`, but passes each loop's number to `body`.
    package func collect<Value: Sendable>(
        _ body: @escaping @Sendable (_ index: Int) -> Value
    ) -> Guarantee<[Result<Value, DispatchError>]> {
        let (guarantee, resolve) = Guarantee<[Result<Value, DispatchError>]>.pending()
        let home = EventLoop.ofCurrentThread.loopToNotify
        home.beginExternalWork()
        let answers = Answers<Value>(count) { answers in
            resolve(answers)
            home.endExternalWork()
        }
        for (index, remote) in enumerated() { remote.submit { answers.put(body(index), at: index) } }
        return guarantee
    }

    /// Runs `body` on each loop with the loop's value of `state`, and collects the results in the order of the loops.
    ///
    /// ```swift
    /// let requests = group.collect(counters) { $0.requests }
    ///     .map { answers in answers.compactMap { try? $0.get() }.reduce(0, +) }
    /// ```
    ///
    /// See `collect(_:)`. A loop that has no value makes one.
    public func collect<State: SendableMetatype, Value: Sendable>(
        _ state: LoopLocal<State>, _ body: @escaping @Sendable (State) -> Value
    ) -> Guarantee<[Result<Value, DispatchError>]> {
        collect { body(state.value(on: EventLoop.ofCurrentThread)) }
    }
}

/// The jobs retain this object, so its `deinit` delivers the results once all have run or been dropped. A dropped job's
/// result stays `loopEnded`.
private final class Answers<Value: Sendable>: Sendable {
    private let results: LockedValue<[Result<Value, DispatchError>]>
    private let done: @Sendable ([Result<Value, DispatchError>]) -> Void

    init(_ count: Int, _ done: @escaping @Sendable ([Result<Value, DispatchError>]) -> Void) {
        results = LockedValue(Array(repeating: .failure(.loopEnded), count: count))
        self.done = done
    }

    func put(_ value: Value, at index: Int) { results.withLock { $0[index] = .success(value) } }

    deinit { done(results.withLock { $0 }) }
}
