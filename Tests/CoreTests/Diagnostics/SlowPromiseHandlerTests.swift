@testable import PromisesTestSupport

/// Promise handlers that block their loop for long.
struct SlowPromiseHandlerTests {
    @Test func theyAreReportedWithoutATraceToo() throws {
        let clock = VirtualClock()
        try EventLoop.withLoop(clock: clock) { loop in
            loop.slowHandlerThreshold = .milliseconds(100)
            let lines = logged {
                hang(Guarantee.value(1).map { _ in clock.advance(by: .milliseconds(250)) })
            }
            expectEqual(
                lines,
                ["a promise handler held the loop for 0.25 seconds; conf.trace = true shows the lines of promises"])
            expectEqual(loop.metrics.longestHandler?.kind, .promiseHandler)
            try loop.run()
        }
    }

    @Test func aNamedOneIsKnown() {
        let clock = VirtualClock()
        EventLoop.withLoop(clock: clock) { loop in
            loop.slowHandlerThreshold = .milliseconds(100)
            let lines = logged {
                let slow = Guarantee.value(1).map { _ in clock.advance(by: .milliseconds(250)) }.named("parse")
                hang(slow)
            }
            expectEqual(lines.count, 1)
            let start = "a promise handler held the loop for 0.25 seconds, the handler of the "
            expectEqual(lines.first?.hasPrefix(start), true)
            expectEqual(lines.first?.contains("\"parse\""), true)
        }
    }
}

// Tracing is process-wide.
extension SlowPromiseHandlerTests {
    @Test(.ownThread) func aTracedOneTellsItsLineAndItsChain() async {
        await #expect(processExitsWith: .success) { aTracedOneTells() }
    }
}

private func aTracedOneTells() {
    conf.trace = true
    let clock = VirtualClock()
    EventLoop.withLoop(clock: clock) { loop in
        loop.slowHandlerThreshold = .milliseconds(100)
        let lines = logged {
            hang(Guarantee { $0(1) }.map { _ in clock.advance(by: .milliseconds(250)) })
        }
        let place = "\(#fileID):\(#line - 2)"
        let text = lines.joined()
        let start = "a promise handler at \(place) held the loop for 0.25 seconds, the handler of "
        precondition(text.hasPrefix(start), text)
        precondition(text.contains("made at \(place) → map at \(place)"), text)
        precondition(loop.metrics.longestHandler?.callSite?.description == place)
    }
}
