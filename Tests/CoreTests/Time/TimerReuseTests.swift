@testable import Promises
@testable import PromisesTestSupport

/// The core of a timer is a plain one, which the loop reuses, with the timer's id in it.
struct TimerReuseTests {
    private let loop = EventLoop.current

    private func address<T>(_ promise: Guarantee<T>) -> UnsafeMutableRawPointer {
        Unmanaged.passUnretained(promise.core).toOpaque()
    }

    /// A timer that only the loop and the next step refer to.
    private func step(_ delay: Duration) -> (timer: UnsafeMutableRawPointer, step: Guarantee<Int>) {
        let timer = after(delay)
        return (address(timer), timer.map { 1 })
    }

    @Test(.inLoop, .disabled(if: isSanitized)) func theCoreOfATimerThatHasFiredIsUsedAgain() throws {
        let (first, step) = step(.seconds(1))
        try loop.run()
        expectEqual(step.settledValue, 1)
        let next = after(.seconds(1))
        expect(address(next) == first && next.isPending)
        try loop.run()
        expect(!next.isPending)
    }

    @Test(.inLoop) func cancellingAStepThatHasTheCoreOfATimerCancelsNoTimer() throws {
        let (_, first) = step(.seconds(1))
        try loop.run()
        expectEqual(first.settledValue, 1)
        let (promise, resolver) = Promise<Int>.pending()
        let steps = (0..<4).map { _ in promise.map { $0 } }
        let timers = (0..<4).map { _ in after(.seconds(1)) }
        for step in steps {
            step.cauterize()
            step.cancel()
        }
        expectEqual(loop.keepAliveReport.timers, 4)
        try loop.run()
        expect(timers.allSatisfy { !$0.isPending })
        withExtendedLifetime(resolver) {}
    }

    @Test(.inLoop) func aTimerThatIsStartedWhileTheLoopEndsIsRejected() throws {
        var timers: [Guarantee<Void>] = []
        inLoop { loop in
            // Released with the timer's closure, when the loop ends.
            let words = LastWords {
                timers.append(after(.seconds(1)))
                timers.append(after(deadline: loop.now))
            }
            loop.schedule(after: .seconds(1)) { words.use() }
        }
        expectEqual(timers.count, 2)
        for timer in timers { expect(timer.asPromise().error as? PromiseError == .loopEnded) }
    }
}
