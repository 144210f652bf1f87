import Reactor
import Synchronization

extension LoopGroup {
    /// Asks each loop: calls `body` on the thread of each, as a job, and gathers the results in the order of the loops.
    ///
    /// ```swift
    /// let turns = group.collect { EventLoop.current.metrics.turns }
    ///     .map { answers in answers.compactMap { try? $0.get() }.reduce(0, +) }
    /// ```
    ///
    /// Any thread may ask, and an async function may await the value. This thread's loop counts the question as
    /// external work until all loops have answered.
    /// - Parameter body: called once on each loop.
    /// - Returns: a guarantee of one result for each loop. A loop that has ended, or ends before it has answered, has
    ///   the failure `DispatchError.loopEnded`.
    public func collect<Value: Sendable>(
        _ body: @escaping @Sendable () -> Value
    ) -> Guarantee<[Result<Value, DispatchError>]> {
        let (guarantee, resolve) = Guarantee<[Result<Value, DispatchError>]>.pending()
        let home = EventLoop.ofCurrentThread.loopToNotify
        home.beginExternalWork()
        let answers = Answers<Value>(count) { answers in
            resolve(answers)
            home.endExternalWork()
        }
        for (index, remote) in enumerated() {
            let answer = CollectedAnswer(index, answers)
            remote.submit { answer.give(body()) }
        }
        return guarantee
    }

    /// Asks each loop about its value of `state`, on the thread of each, and gathers the results in the order of the
    /// loops.
    ///
    /// ```swift
    /// let requests = group.collect(counters) { $0.requests }
    ///     .map { answers in answers.compactMap { try? $0.get() }.reduce(0, +) }
    /// ```
    ///
    /// A loop that has no value yet makes one.
    /// - Parameters:
    ///   - state: the values of the loops. A loop that has none yet makes one.
    ///   - body: called once on each loop, with the loop's value.
    /// - Returns: as `collect(_:)`.
    public func collect<State: SendableMetatype, Value: Sendable>(
        _ state: LoopLocal<State>, _ body: @escaping @Sendable (State) -> Value
    ) -> Guarantee<[Result<Value, DispatchError>]> {
        collect { body(state.value(on: EventLoop.ofCurrentThread)) }
    }
}

/// The answers of the loops.
private final class Answers<Value: Sendable>: Sendable {
    private let given: LockedValue<(results: [Result<Value, DispatchError>], left: Int)>
    private let done: @Sendable ([Result<Value, DispatchError>]) -> Void

    init(_ count: Int, _ done: @escaping @Sendable ([Result<Value, DispatchError>]) -> Void) {
        given = LockedValue((Array(repeating: .failure(.loopEnded), count: count), count))
        self.done = done
    }

    /// Any thread. Called once for each loop.
    func put(_ result: Result<Value, DispatchError>, at index: Int) {
        let all = given.withLock { given -> [Result<Value, DispatchError>]? in
            given.results[index] = result
            given.left -= 1
            return given.left == 0 ? given.results : nil
        }
        if let all { done(all) }
    }
}

/// The answer of one loop, held by the job that gives it. A job that is released without having run has none.
private final class CollectedAnswer<Value: Sendable>: Sendable {
    private let index: Int
    private let answers: Answers<Value>
    private let isGiven = Atomic(false)

    init(_ index: Int, _ answers: Answers<Value>) {
        self.index = index
        self.answers = answers
    }

    deinit {
        if !isGiven.load(ordering: .relaxed) { answers.put(.failure(.loopEnded), at: index) }
    }

    func give(_ value: Value) {
        isGiven.store(true, ordering: .relaxed)
        answers.put(.success(value), at: index)
    }
}
