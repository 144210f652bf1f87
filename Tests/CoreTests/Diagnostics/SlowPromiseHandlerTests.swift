@testable import PromisesTestSupport

/// Promise handlers that block their loop for long.
struct SlowPromiseHandlerTests {
    /// The reports of a loop that hangs on a guarantee, whose handler blocks it for a quarter of a second.
    private static func reports(
        _ make: (_ block: @escaping () -> Void) -> Guarantee<Void>
    ) -> (lines: [String], slowest: SlowHandler?) {
        let clock = VirtualClock()
        return EventLoop.withLoop(clock: clock) { loop in
            loop.slowHandlerThreshold = .milliseconds(100)
            let lines = logged { hang(make { clock.advance(by: .milliseconds(250)) }) }
            return (lines, loop.metrics.longestHandler)
        }
    }

    @Test func theyAreReportedWithTheirName() {
        let (text, hint) = ("held the loop for 0.25 seconds", "; conf.trace = true shows the lines of promises")
        let unknown = Self.reports { block in Guarantee.value(1).map { _ in block() } }
        expectEqual(unknown.lines, ["a promise handler \(text)\(hint)"])
        expectEqual(unknown.slowest?.kind, .promiseHandler)
        let named = Self.reports { block in Guarantee.value(1).map { _ in block() }.named("parse") }
        expectEqual(named.lines, ["a promise handler \(text), the handler of the Guarantee<()> \"parse\"\(hint)"])
    }

    // Tracing is process-wide.
    @Test(.ownThread) func aTracedOneTellsItsLineAndItsChain() async {
        await #expect(processExitsWith: .success) { SlowPromiseHandlerTests.aTracedOneTells() }
    }

    private static func aTracedOneTells() {
        conf.trace = true
        let traced = reports { block in Guarantee { $0(1) }.map { _ in block() } }
        let place = "\(#fileID):\(#line - 1)"
        let start = "a promise handler at \(place) held the loop for 0.25 seconds, the handler of "
        expect(traced.lines.count == 1 && traced.lines[0].hasPrefix(start), "\(traced.lines)")
        expect(traced.lines[0].contains("made at \(place) → map at \(place)"))
        expectEqual(traced.slowest?.callSite?.description, place)
    }
}
