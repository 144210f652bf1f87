@testable import PromisesTestSupport

/// Dispatchers that refuse a job, release it, or run it more than once.
struct OnRefusalTests {
    private var loop: EventLoop { .current }

    @Test(.inLoop) func whatTheDispatcherThrowsRejects() {
        let tally = Tally()
        let mapped = {
            let token = tally.token()
            return Promise.value(1).map(on: Refuser()) { token.with($0) }
        }()
        expect(mapped.flaw == Flaw(503) && tally.alive == 0)
        expectEqual(Promise.value(1).then(on: Refuser()) { Promise.value($0) }.flaw, Flaw(503))
        expectEqual(Promise.value(1).tap(on: Refuser()) { _ in Issue.record("it ran") }.flaw, Flaw(503))
        let failed = Promise<Int>(error: Flaw(1))
        expectEqual(failed.recover(on: Refuser()) { _ in Promise.value(1) }.flaw, Flaw(503))
        expectEqual(Promise(on: Refuser()) { try number() }.flaw, Flaw(503))
    }

    private func number() throws -> Int { 1 }

    @Test(.inLoop) func aJobThatIsReleasedIsAbandoned() {
        let line: UInt = #line + 3
        var mapped: Promise<Int>?
        let lines = logged {
            mapped = Promise.value(1).map(on: Shredder()) { $0 }
        }
        expect(mapped?.error as? PromiseError == .abandoned)
        expect(lines.count == 1 && lines[0].contains("\(#fileID):\(line) was abandoned"))
    }

    @Test(.inLoop) func aGuaranteeHasNoErrorAndIsAbandoned() throws {
        for dispatcher in [Refuser(), Shredder()] as [any Dispatcher] {
            let forms: [() -> Guarantee<Int>] = [
                { Guarantee.value(1).map(on: dispatcher) { $0 } },
                { Guarantee.value(1).then(on: dispatcher) { .value($0) } },
                { Promise<Int>(error: Flaw(1)).recover(on: dispatcher) { _ in .value(2) } },
            ]
            for form in forms {
                let lines = try loggedInLoop { loop throws in
                    form().done { _ in Issue.record("it has run") }
                    try loop.run()
                }
                expectEqual(lines.count, 1, "\(lines)")
                expectEqual(lines.first?.hasPrefix("unhandled rejection: Flaw(number: 503)"), dispatcher is Refuser)
            }
            _ = logged { expect(forms[0]().asPromise().error as? PromiseError == .abandoned) }
        }
    }

    @Test(.inLoop) func aCatchThatCannotRunReportsTheErrorAndStillEnds() throws {
        for dispatcher in [Refuser(), Shredder()] as [any Dispatcher] {
            var ended = false
            let lines = try logged {
                Promise<Int>(error: Flaw(1)).catch(on: dispatcher) { _ in }.finally { ended = true }
                try loop.run()
            }
            expect(ended && lines.count == 2)
            expectEqual(lines.first?.hasPrefix("unhandled rejection: Flaw(number: 503)"), dispatcher is Refuser)
            expectEqual(lines.last?.hasPrefix("unhandled rejection: Flaw(number: 1)"), true)
        }
    }

    @Test(.inLoop) func aJobIsRunOnce() {
        struct Stutterer: Dispatcher {
            func dispatch(_ job: @escaping @Sendable () -> Void) throws {
                job()
                job()
                throw Flaw(503)
            }
        }
        let runs = Shared(0)
        let mapped = Promise.value(1).map(on: Stutterer()) { value in
            runs.change { $0 += 1 }
            return value
        }
        expect(mapped.settledValue == 1 && runs.value == 1)
    }

    @Test(.inLoop) func aFullPoolRejects() throws {
        let pool = try ThreadPool(name: "full", threads: 1, queueLimit: 1)
        let gate = Gate()
        try EventLoop.withLoop { _ throws in
            let all = (0..<3).map { number in
                Promise.value(number).map(on: pool) { number in
                    gate.wait()
                    return number
                }
            }
            expect(all[2].error as? DispatchError == .queueIsFull(name: "full", limit: 1))
            gate.open()
            gate.open()
            expect(all[0], gives: 0)
            expect(all[1], gives: 1)
        }
        pool.shutDown()
        expect(Promise.value(1).map(on: pool) { $0 }.error as? DispatchError == .poolIsShutDown(name: "full"))
        expect(!loop.isAlive, "there is no work to wait for")
    }

    /// A clean-up that does not run rejects its promise, as after any error of the source; one that was cancelled in the
    /// dispatcher's queue rejects it as cancelled.
    @Test(.inLoop, arguments: [false, true]) func aCancelledCleanUpThatDoesNotRun(isQueued: Bool) throws {
        let shelf = Shelf()
        for dispatcher in [Refuser(), Shredder(), shelf] as [any Dispatcher] {
            let lines = try loggedInLoop { loop throws in
                let (source, resolver) = Promise<Int>.pending()
                let cleaned = source.tap(on: dispatcher) { _ in Issue.record("it ran") }
                if isQueued && dispatcher is Shelf { resolver.fulfill(1) }
                cleaned.cancel()
                shelf.clear()
                try loop.run()
                expect(cleaned.isRejected)
                withExtendedLifetime(resolver) {}
            }
            expectEqual(lines.count, isQueued && dispatcher is Shelf ? 0 : 1, "\(lines)")
            let report = dispatcher is Refuser ? "unhandled rejection: Flaw(number: 503)" : "abandoned"
            expect(lines.allSatisfy { $0.contains(report) }, "\(lines)")
        }
    }
}
