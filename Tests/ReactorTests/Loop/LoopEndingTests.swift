import Reactor
import TestSupport
import Testing

/// The closures that a loop calls at its end.
@Suite struct LoopEndingTests {
    @Test func theyAreCalledInTheirOrderWithoutThoseThatOneHasForgotten() {
        var calls: [Int] = []
        EventLoop.withLoop { loop in
            var ids: [Int] = []
            for number in 0..<5 {
                ids.append(
                    loop.whenEnding {
                        calls.append(number)
                        if number == 0 {
                            loop.forgetEnding(ids[1])
                            loop.forgetEnding(ids[3])
                            // The loop has ended, so this one is released.
                            _ = loop.whenEnding { calls.append(5) }
                        }
                    })
            }
        }
        expectEqual(calls, [0, 2, 4])
    }
}
