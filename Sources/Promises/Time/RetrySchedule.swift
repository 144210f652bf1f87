import ReactorLibc
import Reactor

/// The pauses between the attempts of `retry`.
///
/// ```swift
/// retry(maxAttempts: 5, delay: .exponential(from: .milliseconds(50))) { _ in fetch(url) }
/// ```
public struct RetrySchedule {
    /// Returns the pause after a failed attempt, given its number (from 1) and its error; `nil` for no further attempt.
    let pause: (Int, any Error) -> Duration?
    var problem: String?

    /// Makes pauses of equal length.
    public static func constant(_ pause: Duration) -> RetrySchedule { .custom { _, _ in pause } }

    /// Makes pauses that grow from `first` by `factor`, up to `cap`.
    ///
    /// With full jitter, the default, each pause is drawn uniformly between zero and its nominal length, so clients
    /// that failed together retry at different times. (M. Brooker, "Exponential Backoff And Jitter", 2015.)
    /// - Parameters:
    ///   - first: the nominal pause before the second attempt.
    ///   - factor: the ratio of each pause to the previous one. A factor below 1 rejects the promise of `retry` with
    ///     `PromiseError.badInput`.
    ///   - cap: the longest pause.
    ///   - isJittered: true to randomize pauses.
    public static func exponential(
        from first: Duration = .milliseconds(100), factor: Double = 2, cap: Duration = .seconds(30),
        isJittered: Bool = true
    ) -> RetrySchedule {
        var schedule = RetrySchedule.custom { attempt, _ in
            let longest = growing(from: first, by: factor, cap, attempt)
            var random = LoopRandom(.ofCurrentThread)
            return isJittered ? longest * Double.random(in: 0...1, using: &random) : longest
        }
        if !(factor >= 1) { schedule.problem = "a retry schedule's factor must be at least 1, not \(factor)" }
        return schedule
    }

    /// Makes pauses that a closure computes, for example from a hint in the server's error.
    ///
    /// ```swift
    /// .custom { attempt, error in (error as? Busy)?.retryAfter ?? .seconds(attempt) }
    /// ```
    /// - Parameter pause: returns the pause after a failed attempt, given its number (from 1) and its error; `nil` for
    ///   no further attempt.
    public static func custom(_ pause: @escaping (_ attempt: Int, _ error: any Error) -> Duration?) -> RetrySchedule {
        RetrySchedule(pause: pause)
    }

    private static func growing(
        from first: Duration, by factor: Double, _ cap: Duration, _ attempt: Int
    ) -> Duration {
        // Rounded to whole nanoseconds, so that 100 ms doubled is exactly 200 ms.
        let pause = (Double(first.clampedNanoseconds) * pow(factor, Double(attempt - 1))).rounded()
        guard pause > 0 else { return .zero }
        return pause < Double(cap.clampedNanoseconds) ? .nanoseconds(Int64(pause)) : max(cap, .zero)
    }
}
