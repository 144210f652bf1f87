import Reactor
import Synchronization

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
    /// - Parameter body: called once on each loop.
    /// - Returns: a guarantee of one result per loop. For a loop that has ended, or ends before it has answered, it is
    ///   the failure `DispatchError.loopEnded`.
    public func collect<Value: Sendable>(
        _ body: @escaping @Sendable () -> Value
    ) -> Guarantee<[Result<Value, DispatchError>]> { collect { (_: Int) in body() } }

    /// Like `collect(_:)`, with the number of each loop.
    func collect<Value: Sendable>(
        _ body: @escaping @Sendable (_ index: Int) -> Value
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
            remote.submit { answer.give(body(index)) }
        }
        return guarantee
    }

    /// Runs `body` on each loop with its value of `state`, and collects the results in the order of the loops.
    ///
    /// ```swift
    /// let requests = group.collect(counters) { $0.requests }
    ///     .map { answers in answers.compactMap { try? $0.get() }.reduce(0, +) }
    /// ```
    ///
    /// A loop without a value makes one.
    /// - Parameters:
    ///   - state: the value of each loop. A loop without one makes it.
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

    /// Any thread. Called once per loop.
    func put(_ result: Result<Value, DispatchError>, at index: Int) {
        let all = given.withLock { given -> [Result<Value, DispatchError>]? in
            given.results[index] = result
            given.left -= 1
            return given.left == 0 ? given.results : nil
        }
        if let all { done(all) }
    }
}

/// The answer of one loop, held by the job that gives it. A job that is released without having run gives none.
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
