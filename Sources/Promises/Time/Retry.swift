import Reactor

/// Calls `body` until its promise is fulfilled, up to `maxAttempts` times in all.
///
/// ```swift
/// retry(maxAttempts: 5, delay: .exponential(from: .milliseconds(100))) { _ in fetch(url) }
/// ```
///
/// The first call is made at once, inside this one; the later ones as jobs of this thread's loop, after the pause that the
/// schedule says. An error that means "cancelled" is never tried again, nor one that `isRetryable` answers false for. In
/// the end the last error rejects the result. Cancelling the result cancels the attempt that is under way, or the timer.
/// Any number of attempts takes constant memory.
/// - Parameters:
///   - maxAttempts: the first included; less than 1 rejects with `PromiseError.badInput`. `.max` for no limit.
///   - schedule: how long to wait between attempts.
///   - isRetryable: whether another attempt makes sense after this error. What it throws rejects in its place.
///   - body: the work; it is given the number of the attempt, from 1. An error that it throws counts as a failed attempt.
@available(*, noasync, message: "an async function has no loop of its own; write a loop with Task.sleep")
public func retry<Next: Thenable>(
    maxAttempts: Int, delay schedule: RetrySchedule = .none,
    while isRetryable: @escaping (any Error) throws -> Bool = { _ in true },
    _ body: @escaping (_ attempt: Int) throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Next.T> {
    let retrying = Retrying(maxAttempts, schedule, body) { .known(try isRetryable($0)) }
    return Promise(retrying.begin().traced(root: "retry", Promise<Next.T>.self, file, line))
}

/// As the other form, with a condition that takes its time: the next attempt waits for its promise, and then for the
/// schedule.
@available(*, noasync, message: "an async function has no loop of its own; write a loop with Task.sleep")
public func retry<Next: Thenable, Condition: Thenable>(
    maxAttempts: Int, delay schedule: RetrySchedule = .none,
    while isRetryable: @escaping (any Error) throws -> Condition,
    _ body: @escaping (_ attempt: Int) throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Next.T> where Condition.T == Bool {
    let retrying = Retrying(maxAttempts, schedule, body) { .asked(try isRetryable($0).asPromise()) }
    return Promise(retrying.begin().traced(root: "retry", Promise<Next.T>.self, file, line))
}

/// One `retry`.
private final class Retrying<Next: Thenable> {
    enum Answer {
        case known(Bool)
        case asked(Promise<Bool>)
    }

    private let maxAttempts: Int
    private let schedule: RetrySchedule
    private let body: (Int) throws -> Next
    private let isRetryable: (any Error) throws -> Answer

    init(
        _ maxAttempts: Int, _ schedule: RetrySchedule, _ body: @escaping (Int) throws -> Next,
        _ isRetryable: @escaping (any Error) throws -> Answer
    ) {
        self.maxAttempts = maxAttempts
        self.schedule = schedule
        self.body = body
        self.isRetryable = isRetryable
    }

    func begin() -> PromiseCore {
        if maxAttempts < 1 {
            let problem = "retry(maxAttempts: \(maxAttempts)): at least one attempt is needed"
            return PromiseCore(error: PromiseError.badInput(problem), origin: nil)
        }
        if let problem = schedule.problem { return PromiseCore(error: PromiseError.badInput(problem), origin: nil) }
        return attempt(1)
    }

    func attempt(_ number: Int) -> PromiseCore {
        do { return try body(number).asPromise().core.derive(Attempt(self, number)) } catch {
            return PromiseCore(error: error, origin: nil).derive(Attempt(self, number))
        }
    }

    /// What comes after attempt `number`, of `core`, has failed; `nil`: nothing.
    func next(after error: any Error, _ number: Int, _ core: PromiseCore) throws -> PromiseCore? {
        guard number < maxAttempts, !error.isCancelled else { return nil }
        switch try isRetryable(error) {
        case .known(false): return nil
        case .known(true): return pause(after: error, number, core)
        case .asked(let answer):
            return answer.then { [self] isYes in
                guard isYes, let next = pause(after: error, number, core) else { throw error }
                return Promise<Next.T>(next)
            }.core
        }
    }

    private func pause(after error: any Error, _ number: Int, _ core: PromiseCore) -> PromiseCore? {
        // Condition and schedule are the user's code, which may have cancelled the result.
        guard core.settled == nil, let pause = schedule.pause(number, error), core.settled == nil else { return nil }
        if pause <= .zero { return attempt(number + 1) }
        return after(pause).then { [self] in Promise<Next.T>(attempt(number + 1)) }.core
    }

    private func after(_ pause: Duration) -> Guarantee<Void> { Guarantee(TimerCore(pause)) }

    private struct Attempt: Operation {
        typealias Input = Next.T
        typealias Output = Next.T
        let retrying: Retrying
        let number: Int

        init(_ retrying: Retrying, _ number: Int) {
            self.retrying = retrying
            self.number = number
        }

        func run(_ source: Source<Next.T>, _ core: PromiseCore) {
            guard !source.isFulfilled else { return core.finish(as: source) }
            do {
                guard let next = try retrying.next(after: source.error, number, core) else {
                    return core.finish(as: source)
                }
                core.finish(following: next, as: Next.T.self)
            } catch { core.finish(throwing: error) }
        }
    }
}
