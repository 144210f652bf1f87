@testable import PromisesTestSupport

struct AbandonmentTests {
    /// Expects one report, of a promise made on the given line of `body`.
    private func expectReport(after lines: UInt = 1, line: UInt = #line, _ body: () throws -> Void) rethrows {
        let place = "\(#fileID):\(line + lines)"
        let report = "the promise made at \(place) was abandoned: its last resolver was released without settling it"
        expectEqual(try logged(body), [report])
    }

    @Test func ofAnInitializer() {
        expectReport {
            let promise = Promise<Int> { _ in }
            expect(promise, failsWith: PromiseError.abandoned)
        }
    }

    @Test func isLoggedAlsoIfThePromiseWasReleased() { expectReport(after: 0) { _ = Promise<Int>.pending() } }

    @Test func isReportedBeforeAnythingLearnsOfIt() {
        let order = Shared<[String]>([])
        let line: UInt = 77
        let recorder = LogRecorder(
            where: { $0.description.contains("\(#fileID):\(line)") },
            reaction: { _ in order.change { $0.append("report") } })
        do {
            let (promise, resolver) = Promise<Int>.pending(#fileID, line)
            promise.pipe { _ in order.change { $0.append("handler") } }
            withExtendedLifetime(resolver) {}
        }
        recorder.stop()
        expectEqual(order.value, ["report", "handler"])
    }

    @Test(.inLoop) func aGuaranteeCanOnlyBeLogged() throws {
        try expectReport {
            let guarantee = Guarantee<Int> { _ in }
            var ran = false
            guarantee.done { _ in ran = true }
            try EventLoop.current.run()
            expect(guarantee.isPending && !ran)
            expect(guarantee.asPromise(), failsWith: PromiseError.abandoned)
        }
    }

    @Test func aGuaranteeThatIsAbandonedDoesNotWinARace() throws {
        let lines = try loggedInLoop { _ throws in
            let winner = race(Guarantee<Int> { _ in }, after(.seconds(1)).map { 2 })
            expect(winner, gives: 2)
        }
        expectEqual(lines.count, 1)
    }

    @Test func fromAnotherThread() {
        let line: UInt = 78
        let recorder = LogRecorder(where: { $0.description.contains("made at \(#fileID):\(line)") })
        let (promise, resolver) = Promise<Int>.pending(#fileID, line)
        let box = Shared<Resolver<Int>?>(resolver)
        _ = consume resolver
        TestThread.run { box.value = nil }
        recorder.stop()
        expectEqual(recorder.count, 1)
        expect(promise.error as? PromiseError == .abandoned)
    }
}
