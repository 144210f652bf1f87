@testable import PromisesTestSupport

/// An error defined by a user that may mean "cancelled".
private struct Withdrawn: CancellableError {
    let isCancelled: Bool
}

struct CatchTests {
    private let loop = EventLoop.current

    private static let cancellations: [any Error] = [
        PromiseError.cancelled, CancellationError(), Withdrawn(isCancelled: true),
    ]

    /// By the end of a chain, or by its promises: the handler sees it if its policy allows, and `finally` runs.
    @Test(.inLoop, arguments: [CatchPolicy.allErrors, .allErrorsExceptCancellation], [nil, false, true])
    func theEndOfAChainIsCancelled(policy: CatchPolicy, isShared: Bool?) throws {
        for isDispatched in [false, true] {
            try inLoop { loop throws in
                let seen = Shared<[String]>([])
                let (promise, resolver) = Promise<Int>.pending()
                resolver.onCancel { seen.change { $0.append("stopped") } }
                let step = promise.map { $0 }.ensure { seen.change { $0.append("ensure") } }
                if isShared == true { step.pipe { _ in } }
                let note = { @Sendable (error: any Error) in
                    seen.change { $0.append(error.isCancelled ? "cancelled" : "\(error)") }
                }
                let end = isDispatched ? step.catch(on: nil, policy: policy, note) : step.catch(policy: policy, note)
                end.finally { seen.change { $0.append("finally") } }
                // In time, too late, and twice.
                if isShared == nil { resolver.fulfill(1) } else { end.cancel() }
                try loop.run()
                end.cancel()
                try loop.run()
                let caught = policy == .allErrors ? ["cancelled"] : []
                switch isShared {
                case nil: expectEqual(seen.value, ["ensure", "finally"])
                case true?: expectEqual(seen.value, caught + ["finally"])
                case false?: expectEqual(seen.value, ["stopped", "ensure"] + caught + ["finally"])
                }
                expectEqual(promise.isPending, isShared == true)
                resolver.fulfill(1)
                try loop.run()
            }
        }
    }

    @Test(.inLoop) func cancellationPassesByUnlessAskedFor() throws {
        for error in Self.cancellations {
            var byDefault = 0
            var explicitly = 0
            var all = 0
            let promise = Promise<Int>(error: error)
            promise.catch { _ in byDefault += 1 }
            promise.catch(policy: .allErrorsExceptCancellation) { _ in explicitly += 1 }
            promise.catch(policy: .allErrors) { _ in all += 1 }
            try loop.run()
            expect(byDefault == 0 && explicitly == 0 && all == 1, "\(error)")
        }
    }

    @Test(.inLoop) func cancellationPassesByTheOtherOperatorsUnlessAskedFor() {
        let cancelled = Promise<Int>(error: PromiseError.cancelled)
        var calls = 0
        let byDefault = [
            cancelled.recover { _ in Promise.value(1) }, cancelled.recover(only: PromiseError.self) { _ in .value(1) },
            cancelled.tapError { _ in calls += 1 },
        ]
        for promise in byDefault { expect(promise, failsWith: PromiseError.cancelled) }
        expect(cancelled.recover(policy: .allErrors) { _ in Promise.value(1) }, gives: 1)
        expect(cancelled.recover(only: PromiseError.self, policy: .allErrors) { _ in Promise.value(1) }, gives: 1)
        expect(cancelled.recover(only: PromiseError.cancelled) { Promise.value(1) }, gives: 1)
        expectEqual(calls, 0)
        expect(cancelled.tapError(policy: .allErrors) { _ in calls += 1 }, failsWith: PromiseError.cancelled)
        expectEqual(calls, 1)
    }

    @Test(.inLoop, .ownThread) func theDefaultPolicyCanBeChanged() async {
        // In a separate process: the setting is process-wide.
        await #expect(processExitsWith: .success) { try catchWithAllErrorsByDefault() }
    }
}

private func catchWithAllErrorsByDefault() throws {
    conf.catchPolicy = .allErrors
    try inLoop { loop throws in
        var seen = 0
        let promise = Promise<Int>(error: PromiseError.cancelled)
        promise.catch { _ in seen += 1 }
        conf.catchPolicy = .allErrorsExceptCancellation
        promise.catch { _ in seen += 10 }
        try loop.run()
        precondition(seen == 1, "the policy is read when catch is called")
    }
}

struct FinallyTests {
    @Test func runsAfterEveryOutcome() throws {
        _ = try logged {
            let outcomes: [(Promise<Int>, [String])] = [
                (.value(1), []), (Promise(error: Flaw()), ["catch"]), (Promise(error: PromiseError.cancelled), []),
                (Promise { _ in }, ["catch"]),
            ]
            for (promise, caught) in outcomes {
                try inLoop { loop throws in
                    var events: [String] = []
                    let finalizer = promise.catch { _ in events.append("catch") }
                    finalizer.finally { events.append("first") }
                    finalizer.finally { events.append("second") }
                    try loop.run()
                    expectEqual(events, caught + ["first", "second"])
                }
            }
        }
    }
}
