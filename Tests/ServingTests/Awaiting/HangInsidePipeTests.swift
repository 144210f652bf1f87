@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// A `hang` in an inline handler, on a promise that depends on the very one being settled.
struct HangInsidePipeTests {
    @Test(.inLoop, arguments: [false, true]) func onAPromiseThatIsDerivedThere(behindAWhen: Bool) throws {
        let loop = EventLoop.current
        let seen = Shared<[Int]>([])
        let (promise, resolver) = Promise<Int>.pending()
        // Keeps the loop alive, so that a hang that cannot end is not even reported.
        let timer = loop.schedule(after: .seconds(10)) {}
        let handler = { @Sendable () -> Void in
            let value = try? hang(promise.map { $0 + 1 }, timeout: .seconds(1))
            seen.change { $0.append(value ?? -1) }
        }
        if behindAWhen {
            when(fulfilled: [promise]).pipe { _ in handler() }
        } else {
            promise.pipe { _ in handler() }
        }
        resolver.fulfill(1)
        expect(seen.value == [2] && loop.now.nanoseconds == 0)
        timer.cancel()
    }

    /// The hang notifies those that the settlement has yet to reach.
    @Test(.inLoop) func onOneThatWasDerivedBefore() throws {
        let loop = EventLoop.current
        let seen = Shared<[String]>([])
        let (promise, resolver) = Promise<Int>.pending()
        let derived = Shared<Promise<Int>?>(nil)
        promise.pipe { _ in
            let value = derived.value.flatMap { try? hang($0, timeout: .seconds(1)) }
            seen.change { $0.append("first \(value ?? -1)") }
        }
        promise.pipe { _ in seen.change { $0.append("second") } }
        promise.done { _ in seen.change { $0.append("done") } }.orFail()
        when(fulfilled: [promise]).done { _ in seen.change { $0.append("when") } }.orFail()
        derived.change { $0 = promise.map { $0 + 1 } }
        promise.pipe { _ in seen.change { $0.append("third") } }
        resolver.fulfill(1)
        expectEqual(seen.value, ["second", "third", "done", "when", "first 2"])
        expect(loop.now.nanoseconds == 0 && promise.settledValue == 1)
    }

    @Test func anErrorThatOnlyALateHandlerSeesIsNotReported() throws {
        let lines = try loggedInLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            promise.pipe { _ in _ = try? hang(promise.map { $0 }, timeout: .seconds(1)) }
            resolver.reject(Flaw(1))
            try loop.run()
        }
        expectEqual(lines, [])
    }
}
