@testable import PromisesTestSupport

private enum Trouble: Error, Equatable {
    case missing
    case denied(Int)
}

private struct GivenUp: CancellableError {
    var isCancelled: Bool { true }
}

struct CatchOnlyTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func byType() throws {
        var seen: [String] = []
        for error in [Flaw(1), Trouble.missing, PromiseError.timedOut] as [any Error] {
            Promise<Int>(error: error)
                .catch(only: Flaw.self) { seen.append("flaw \($0.number)") }
                .catch(only: Trouble.self) { trouble in
                    let text = "\(trouble)"
                    seen.append(text)
                }
                .catch { seen.append("other: \($0)") }
            try loop.run()
        }
        expectEqual(seen, ["flaw 1", "missing", "other: the time limit expired"])
    }

    @Test(.inLoop) func byValue() throws {
        var seen: [String] = []
        for error in [Trouble.missing, Trouble.denied(1), Trouble.denied(2), Flaw(1)] as [any Error] {
            Promise<Int>(error: error)
                .catch(only: Trouble.missing) { seen.append("missing") }
                .catch(only: Trouble.denied(2)) {
                    let text = "denied 2"
                    seen.append(text)
                }
                .catch { seen.append("other: \($0)") }
            try loop.run()
        }
        expectEqual(seen, ["missing", "other: denied(1)", "denied 2", "other: Flaw(number: 1)"])
    }

    @Test(.inLoop) func cancellationPassesByTheTypeUnlessAskedFor() throws {
        var seen: [String] = []
        for error in [PromiseError.cancelled, GivenUp()] as [any Error] {
            let promise = Promise<Int>(error: error)
            promise.catch(only: PromiseError.self) { _ in seen.append("PromiseError") }
                .catch(only: GivenUp.self) { _ in seen.append("GivenUp") }
                .catch { _ in seen.append("all") }
            promise.catch(only: PromiseError.self, policy: .allErrors) { _ in seen.append("PromiseError, asked") }
                .catch(only: GivenUp.self, policy: .allErrors) { _ in seen.append("GivenUp, asked") }
                .cauterize()
        }
        try loop.run()
        expectEqual(seen, ["PromiseError, asked", "GivenUp, asked"])
    }

    @Test(.inLoop) func cancellationIsMetByValueWhateverThePolicy() throws {
        var seen: [String] = []
        Promise<Int>(error: PromiseError.cancelled)
            .catch(only: PromiseError.timedOut) { seen.append("timedOut") }
            .catch(only: PromiseError.cancelled) { seen.append("cancelled") }
            .catch(policy: .allErrors) { _ in seen.append("all") }
        try loop.run()
        expectEqual(seen, ["cancelled"])
    }

    @Test(.inLoop) func theRestIsAPromise() throws {
        var seen: [String] = []
        let rest: Promise<Void> = Promise<Int>(error: Flaw(1)).catch(only: Flaw(1)) { seen.append("catch") }
        expect(rest.isPending, "the handler is a job")
        rest.ensure { seen.append("ensure") }.cauterize().finally { seen.append("finally") }
        try loop.run()
        expect(seen == ["catch", "ensure", "finally"] && rest.isFulfilled)
    }
}

/// The fate of an error that no `catch(only:)` has handled.
struct UnmatchedErrorTests {
    /// The log of a promise that is rejected with `error` and ends in `end`.
    private func lines(_ error: any Error = Flaw(1), _ end: (Promise<Int>) -> Void) throws -> [String] {
        try loggedInLoop { loop throws in
            // Settled later, when all of the chain exists.
            let (promise, resolver) = Promise<Int>.pending("Test.swift", 1)
            end(promise)
            resolver.reject(error)
            try loop.run()
        }
    }

    private let report = ["unhandled rejection: Flaw(number: 1) (promise made at Test.swift:1)"]

    @Test func isReportedUnlessItIsMatchedOrCaught() throws {
        expectEqual(try lines { _ = $0.catch(only: Flaw(2)) {} }, report)
        expectEqual(try lines { _ = $0.catch(only: PromiseError.self) { _ in } }, report)
        expectEqual(try lines { _ = $0.catch(only: Flaw(2)) {}.catch(only: PromiseError.self) { _ in } }, report)
        expectEqual(try lines { _ = $0.catch(only: Flaw(1)) {} }, [])
        expectEqual(try lines { _ = $0.catch(only: Flaw(2)) {}.catch(only: Flaw.self) { _ in } }, [])
        expectEqual(try lines { $0.catch(only: Flaw(2)) {}.catch { _ in } }, [])
        expectEqual(try lines(PromiseError.cancelled) { _ = $0.catch(only: Flaw(2)) {} }, [])
        expectEqual(try lines(PromiseError.cancelled) { _ = $0.catch(only: PromiseError.self) { _ in } }, [])
    }

    @Test func isLoggedByCauterize() throws {
        let lines = try lines { $0.catch(only: Flaw(2)) {}.cauterize() }
        let line = #line - 1
        let text = "cauterized: Flaw(number: 1) (Promise<()> made at Test.swift:1, cauterized at \(#fileID):\(line))"
        expectEqual(lines, [text])
    }
}
