import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Time-outs on threads that own a loop and drive it only now and then.
@Suite struct TimeoutsOnPlainThreadsTests {
    @Test func aSettledPromiseLeavesNoTimer() {
        let hasTimer = Shared<Bool?>(nil)
        TestThread.run {
            expect(Promise.value(1).timeout(.seconds(3600)), gives: 1)
            let after = EventLoop.current.nextDeadline != nil
            hasTimer.change { $0 = after }
        }
        expectEqual(hasTimer.value, false)
    }

    @Test func aCancellationOutsideATurnLeavesNoTimer() {
        let hasTimer = Shared<Bool?>(nil)
        TestThread.run {
            let limited = endless().timeout(.seconds(3600))
            limited.cancel()
            let after = EventLoop.current.nextDeadline != nil
            hasTimer.change { $0 = after }
        }
        expectEqual(hasTimer.value, false)
    }

    @Test func aThreadOfSwiftsPoolKeepsNoTimerEither() async {
        let hasTimer = await Task.detached {
            @Sendable func wait() -> Bool {
                EventLoop.withLoop { loop in
                    expect(Promise.value(1).timeout(.seconds(3600)), gives: 1)
                    return loop.isAlive
                }
            }
            @Sendable func waitOnItsOwnLoop() -> Int {
                let before = EventLoop.current.keepAliveReport.timers
                expect(Promise.value(1).timeout(.seconds(3600)), gives: 1)
                return EventLoop.current.keepAliveReport.timers - before
            }
            return (wait(), waitOnItsOwnLoop())
        }.value
        expectEqual(hasTimer.0, false)
        expectEqual(hasTimer.1, 0)
    }
}
