/// Arithmetic of instants.
struct LoopInstantTests {
    private func at(_ nanoseconds: Int64) -> LoopInstant { LoopInstant(nanoseconds: nanoseconds) }

    @Test func advancingSaturates() {
        expectEqual(at(5).advanced(by: .nanoseconds(7)), at(12))
        expectEqual(at(2) - at(5), .nanoseconds(-3))
        expectEqual(at(5).advanced(by: .seconds(Int64.max)), .distantFuture)
        expectEqual(at(-5).advanced(by: .seconds(Int64.min)), at(.min))
        expectEqual(at(.max).advanced(by: .nanoseconds(1)), .distantFuture)
        expectEqual(at(.max).advanced(by: .nanoseconds(-1)), at(.max - 1))
        expectEqual(at(.max).advanced(by: .zero), .distantFuture)
        // Only an endless duration or moment gives an endless one.
        for step in Int64(1)...7 {
            expectEqual(at(.max - 5).advanced(by: .nanoseconds(step)), at(.max - max(5 - step, 1)))
        }
        expectEqual(at(0).advanced(by: .nanoseconds(Int64.min)), at(.min))
    }

    @Test func durationsNearTheLimitAreRoundedAndClampedLikeOthers() {
        let attosecond = Duration(secondsComponent: 0, attosecondsComponent: 1)
        // Whole nanoseconds, and their limits of 64 bits.
        for limit in [Int64.min, -1, 0, 1, 499_999_999 << 34, .max] {
            for nanoseconds in (-3...3).map({ Int128(limit) + $0 }) {
                let duration = Duration(attoseconds: nanoseconds * 1_000_000_000)
                expectEqual(at(0).advanced(by: duration), at(Int64(clamping: nanoseconds)))
                expectEqual(at(0).advanced(by: duration - attosecond), at(Int64(clamping: nanoseconds)))
                expectEqual(at(0).advanced(by: duration + attosecond), at(Int64(clamping: nanoseconds + 1)))
            }
        }
    }

    @Test func theyAreOrderedAndReadable() {
        expectEqual([at(3), at(-1), .distantFuture, at(2)].sorted(), [at(-1), at(2), at(3), .distantFuture])
        expectEqual(at(12_500_000_000).description, "12.5 s")
    }
}
