@testable import PromisesTestSupport

struct RetryScheduleTests {
    /// The start times of attempts, in milliseconds.
    private func moments(_ schedule: RetrySchedule, attempts: Int) -> [Int64] {
        withVirtualTime { clock in
            var moments: [Int64] = []
            let promise = retry(maxAttempts: attempts, delay: schedule) { _ -> Promise<Void> in
                moments.append(clock.now.nanoseconds / 1_000_000)
                throw Flaw()
            }
            _ = try? hang(promise)
            return moments
        }
    }

    @Test func exponentialWithoutJitterIsExact() {
        let schedule = RetrySchedule.exponential(from: .milliseconds(100), cap: .seconds(1), isJittered: false)
        expectEqual(moments(schedule, attempts: 7), [0, 100, 300, 700, 1500, 2500, 3500])
    }

    @Test func fullJitterStaysBelowAndVaries() {
        let schedule = RetrySchedule.exponential(from: .seconds(1), cap: .seconds(4))
        var ends: Set<Int64> = []
        for _ in 0..<50 {
            let moments = moments(schedule, attempts: 5)
            let pauses = zip(moments.dropFirst(), moments).map { $0 - $1 }
            for (pause, longest) in zip(pauses, [1000, 2000, 4000, 4000]) {
                // The times are truncated to milliseconds.
                expect(pause >= 0 && pause <= longest + 1)
            }
            ends.insert(moments.last!)
        }
        expect(ends.count > 10)
    }

    @Test func hugeAttemptsAndFactorsStayAtTheCap() {
        let schedule = RetrySchedule.exponential(from: .seconds(1), factor: 1e300, cap: .seconds(2), isJittered: false)
        expectEqual(moments(schedule, attempts: 6), [0, 1000, 3000, 5000, 7000, 9000])
        let unbounded = RetrySchedule.exponential(
            from: .seconds(1), factor: 1e9, cap: .seconds(Int64.max), isJittered: false)
        expectEqual(moments(unbounded, attempts: 2), [0, 1000])
    }

    @Test(arguments: [0.5, 0, -2, .nan])
    func aFactorBelowOneIsBadInput(factor: Double) throws {
        try withVirtualTime { () throws in
            let promise = retry(maxAttempts: 2, delay: .exponential(factor: factor)) { _ in Promise.value(1) }
            expect(
                promise, failsWith: PromiseError.badInput("a retry schedule's factor must be at least 1, not \(factor)")
            )
        }
    }

    @Test func negativePausesAreNone() {
        expectEqual(moments(.constant(.seconds(-1)), attempts: 3), [0, 0, 0])
        expectEqual(moments(.exponential(from: .seconds(-1), isJittered: false), attempts: 3), [0, 0, 0])
        expectEqual(moments(.exponential(from: .seconds(1), cap: .zero), attempts: 3), [0, 0, 0])
    }

    @Test func aScheduleOfOnesOwnMayGiveUp() throws {
        let schedule = RetrySchedule.custom { attempt, error in
            (error as? Flaw) == Flaw() && attempt < 3 ? .milliseconds(5 * attempt) : nil
        }
        expectEqual(moments(schedule, attempts: 100), [0, 5, 15])
    }
}
