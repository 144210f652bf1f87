/// Calls `body` until its promise is fulfilled, at most `maxAttempts` times.
///
/// ```swift
/// retry(maxAttempts: 5, delay: .exponential(from: .milliseconds(100))) { _ in fetch(url) }
/// ```
///
/// The first attempt begins inside this call. The others begin in jobs on this thread's loop, after the schedule's
/// pauses. A cancellation, or an error for which `isRetryable` returns `false`, ends the attempts. The last error
/// rejects the result.
///
/// Cancelling the result cancels the current attempt, or the timer between two attempts. Takes constant memory.
/// - Parameters:
///   - maxAttempts: the most attempts, including the first; `.max` for no limit. A number below 1 rejects the result
///     with `PromiseError.badInput`.
///   - schedule: the pauses between attempts.
///   - isRetryable: returns true if another attempt makes sense after this error. An error that it throws rejects the
///     result instead.
///   - body: the work, called with the attempt's number, from 1. An error that it throws fails the attempt.
/// - Returns: a promise of the first value.
@available(*, noasync, message: "an async function has no loop of its own; write a loop with Task.sleep")
public func retry<Next: Thenable>(
    maxAttempts: Int, delay schedule: RetrySchedule = .constant(.zero),
    while isRetryable: @escaping (any Error) throws -> Bool = { _ in true },
    _ body: @escaping (_ attempt: Int) throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Next.T> {
    let retrying = Retrying(maxAttempts: maxAttempts, schedule: schedule, body: body, isRetryable: isRetryable)
    return Promise(retrying.begin().traced(root: "retry", Promise<Next.T>.self, file, line))
}

private struct Retrying<Next: Thenable> {
    let maxAttempts: Int
    let schedule: RetrySchedule
    let body: (Int) throws -> Next
    let isRetryable: (any Error) throws -> Bool

    func begin() -> PromiseCore {
        if maxAttempts < 1 {
            let problem = "retry(maxAttempts: \(maxAttempts)): at least one attempt is needed"
            return PromiseCore(error: PromiseError.badInput(problem))
        }
        if let problem = schedule.problem { return PromiseCore(error: PromiseError.badInput(problem)) }
        return attempt(1)
    }

    func attempt(_ number: Int) -> PromiseCore {
        let next = Attempt(retrying: self, number: number)
        do { return try body(number).asPromise().core.derive(next) } catch {
            return PromiseCore(error: error).derive(next)
        }
    }

    /// Returns `nil` for no further attempt.
    func next(after error: any Error, _ number: Int, _ core: PromiseCore) throws -> PromiseCore? {
        guard number < maxAttempts, !error.isCancelled, try isRetryable(error) else { return nil }
        // The condition and the schedule are user code, which may have cancelled the result.
        guard !core.hasBeenCancelled, let pause = schedule.pause(number, error), !core.hasBeenCancelled else {
            return nil
        }
        if pause <= .zero { return attempt(number + 1) }
        let timer = Guarantee<Void>(TimerPromise.make(after: pause))
        return timer.then { Promise<Next.T>(attempt(number + 1)) }.core
    }

    private struct Attempt: Operation {
        typealias Output = Next.T
        let retrying: Retrying<Next>
        let number: Int

        func run(_ source: Source<Next.T>, _ core: PromiseCore) {
            guard !source.isFulfilled else { return core.finish(as: source) }
            do {
                guard let next = try retrying.next(after: source.error, number, core).map(CoreRef.retaining) else {
                    return core.finish(as: source)
                }
                core.finish(followingOwned: next, as: Next.T.self)
            } catch { core.finish(throwing: error) }
        }
    }
}
