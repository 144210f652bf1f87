@testable import PromisesTestSupport

/// A promise that is never settled keeps its waiters, and nothing else; they are released with it.
struct NeverSettledTests {
    @Test("those that follow it are released, each as it is released", .inLoop, arguments: [false, true])
    func followersAreReleased(hasHandlers: Bool) throws {
        let tally = Tally()
        let loop = EventLoop.current
        let (inner, resolver) = Promise<Int>.pending()
        if hasHandlers { inner.tap { _ in }.ignoringErrors() }
        for _ in 0..<100 {
            let token = tally.token()
            // It waits for the end of a row of links that is itself released.
            _ = Promise.value(()).then {
                Promise.value(()).then { () -> Promise<Int> in
                    token.use()
                    return inner
                }
            }
            try loop.run()
        }
        expect(inner.isPending)
        expectEqual(tally.alive, 0)
        resolver.fulfill(1)
        try loop.run()
        expectEqual(inner.settledValue, 1)
    }

    // In a separate process: other tests allocate too.
    @Test("a great many of them leave no memory behind", .ownThread, .disabled(if: isSanitized))
    func leaveNoMemoryBehind() async {
        await #expect(processExitsWith: .success) {
            conf.logHandler = { _ in }
            inLoop { loop in
                NeverSettledTests.makeAndRelease(5_000, loop)
                let before = residentBytes()
                NeverSettledTests.makeAndRelease(scaled(75_000), loop)
                let growth = residentBytes() - before
                precondition(growth < 1 << 20, "\(growth) bytes are left")
            }
        }
    }

    /// Guarantees that stay pending forever, and chains that wait for them.
    fileprivate static func makeAndRelease(_ count: Int, _ loop: EventLoop) {
        for _ in 0..<count {
            let guarantee = Guarantee<Int> { _ in }
            guarantee.map { $0 + 1 }.then { Promise.value($0) }.ensure {}.catch { _ in }
            _ = Guarantee.value(()).then { guarantee }
            guard case .success = Result(catching: { try loop.run() }) else { preconditionFailure() }
            precondition(guarantee.isPending)
        }
    }
}
