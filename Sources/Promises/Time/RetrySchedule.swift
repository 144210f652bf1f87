import Glibc
import Reactor

/// How long to wait before each further attempt of `retry`.
public struct RetrySchedule {
    /// The pause after the attempt of this number, the first being 1, which failed with that error; `nil`: give up.
    let pause: (Int, any Error) -> Duration?
    /// What is wrong with the numbers that it was made with.
    var problem: String?

    /// The next attempt at once.
    public static var none: RetrySchedule { .custom { _, _ in .zero } }

    /// The same pause before every attempt.
    public static func constant(_ pause: Duration) -> RetrySchedule { .custom { _, _ in pause } }

    /// Pauses that grow from `first` by `factor`, up to `cap`.
    ///
    /// With full jitter, the default, each pause is drawn evenly from zero to what it would be: clients that failed
    /// together do not come back together. (M. Brooker, "Exponential Backoff And Jitter", 2015, compares the kinds.)
    /// - Parameters:
    ///   - first: the pause before the second attempt.
    ///   - factor: by what each pause is longer than the one before, at least 1. Anything else rejects the promise of
    ///     `retry` with `PromiseError.badInput`.
    ///   - cap: no pause is longer.
    public static func exponential(
        from first: Duration = .milliseconds(100), factor: Double = 2, cap: Duration = .seconds(30),
        jitter: Jitter = .full
    ) -> RetrySchedule {
        var schedule = RetrySchedule.custom { attempt, _ in
            let longest = growing(from: first, by: factor, cap, attempt)
            return jitter == .full ? longest * Double.random(in: 0...1) : longest
        }
        if !(factor >= 1) { schedule.problem = "a retry schedule's factor must be at least 1, not \(factor)" }
        return schedule
    }

    /// A schedule of your own: the pause after the attempt of this number, the first being 1, which failed with that error;
    /// `nil` gives up.
    public static func custom(_ pause: @escaping (_ attempt: Int, _ error: any Error) -> Duration?) -> RetrySchedule {
        RetrySchedule(pause: pause)
    }

    private init(pause: @escaping (Int, any Error) -> Duration?) { self.pause = pause }

    /// How chance has a part in a pause.
    public enum Jitter: Sendable {
        /// Evenly from zero to the pause.
        case full
        /// Not at all.
        case none
    }

    private static func growing(
        from first: Duration, by factor: Double, _ cap: Duration, _ attempt: Int
    ) -> Duration {
        // In whole nanoseconds, so that 100 ms doubled is 200 ms and not a little more.
        let pause = (Double(first.clampedNanoseconds) * pow(factor, Double(attempt - 1))).rounded()
        guard pause > 0 else { return .zero }
        return pause < Double(cap.clampedNanoseconds) ? .nanoseconds(Int64(pause)) : max(cap, .zero)
    }
}
