@testable import PromisesTestSupport

struct RetryTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func goesOnUntilItSucceeds() throws {
        var attempts: [Int] = []
        let promise = retry(maxAttempts: 5, delay: .constant(.seconds(10))) { attempt -> Promise<Int> in
            attempts.append(attempt)
            return attempt < 3 ? Promise(error: Flaw(attempt)) : .value(attempt)
        }
        expectEqual(try hang(promise), 3)
        expectEqual(attempts, [1, 2, 3])
        expectEqual(loop.now.nanoseconds, 20_000_000_000)
    }

    @Test(.inLoop) func theLastErrorIsTheResult() throws {
        var (count, asked) = (0, 0)
        let promise = retry(
            maxAttempts: 4, delay: .constant(.seconds(1)),
            while: { _ in
                asked += 1
                return true
            },
            { attempt -> Promise<Int> in
                count += 1
                throw Flaw(attempt)
            })
        expect(promise, failsWith: Flaw(4))
        expect(count == 4 && asked == 3, "nothing is left after the last attempt")
        expect(retry(maxAttempts: 1) { Promise<Int>(error: Flaw($0)) }, failsWith: Flaw(1))
        expectEqual(loop.now.nanoseconds, 3_000_000_000)
    }

    @Test(.inLoop, arguments: [0, -1, Int.min])
    func lessThanOneAttemptIsBadInput(maxAttempts: Int) throws {
        var count = 0
        let promise = retry(maxAttempts: maxAttempts) { _ -> Promise<Int> in
            count += 1
            return .value(1)
        }
        let problem = "retry(maxAttempts: \(maxAttempts)): at least one attempt is needed"
        expect(promise, failsWith: PromiseError.badInput(problem))
        expectEqual(count, 0)
    }

    @Test(.inLoop) func theConditionDecides() throws {
        var asked: [Flaw] = []
        let promise = retry(
            maxAttempts: 10,
            while: { error in
                asked.append(error as! Flaw)
                return error as? Flaw != Flaw(2)
            },
            { attempt -> Promise<Int> in throw Flaw(attempt) })
        expect(promise, failsWith: Flaw(2))
        expectEqual(asked, [Flaw(1), Flaw(2)])
    }

    @Test(.inLoop) func aConditionThatThrowsReplacesTheError() throws {
        let promise = retry(maxAttempts: 3, while: { _ in throw Flaw(77) }, { _ in Promise<Int>(error: Flaw(1)) })
        expect(promise, failsWith: Flaw(77))
    }

    @Test(.inLoop) func aCancelledAttemptIsTheLast() throws {
        var count = 0
        let promise = retry(maxAttempts: 3) { _ -> Promise<Int> in
            count += 1
            throw CancellationError()
        }
        _ = try? hang(promise)
        expect(promise.error is CancellationError && count == 1)
    }

    @Test(.inLoop) func cancelledDuringAPauseTheTimerGoes() throws {
        var count = 0
        let promise = retry(maxAttempts: 3, delay: .constant(.seconds(60))) { _ -> Promise<Int> in
            count += 1
            return Promise(error: Flaw())
        }
        try loop.turn(.poll)
        expect(loop.nextDeadline != nil)
        promise.cancel()
        try loop.run()
        expect(loop.now.nanoseconds == 0 && count == 1)
        expect(promise.error as? PromiseError == .cancelled)
    }

    @Test(.inLoop, arguments: [Duration.zero, .milliseconds(1)])
    func manyAttemptsKeepNothingOfThoseBefore(pause: Duration) throws {
        let count = scaled(20_000)
        let tally = Tally()
        let promise = retry(maxAttempts: .max, delay: .constant(pause)) { attempt -> Promise<Int> in
            let token = tally.token()
            return Promise.value(attempt).map {
                token.use()
                if $0 < count { throw Flaw() }
                return $0
            }
        }
        expect(promise, gives: count)
        expect(tally.peak <= 2 && tally.alive == 0)
    }

    /// By the condition, or by the schedule.
    @Test(.inLoop, arguments: [1, 2, 3], [false, true])
    func noAttemptIsBegunOnceTheResultIsCancelled(last: Int, isByCondition: Bool) throws {
        var result: Promise<Int>?
        var attempts = 0
        let schedule = RetrySchedule.custom { attempt, _ in
            if attempt == last && !isByCondition { result?.cancel() }
            return .zero
        }
        result = retry(maxAttempts: 5, delay: schedule) { _ in
            if attempts == last && isByCondition { result?.cancel() }
            return true
        } _: { _ -> Promise<Int> in
            attempts += 1
            return Promise(error: Flaw())
        }
        try loop.run()
        expect(attempts == last && result?.isCancelled == true)
    }
}
