import Glibc
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// What becomes of an error that no `catch(only:)` has handled.
@Suite struct UnmatchedErrorTests {
    /// What is logged when a promise that is rejected with `error` ends in `end`.
    private func lines(_ error: any Error = Flaw(1), _ end: (Promise<Int>) -> Void) throws -> [String] {
        try logged {
            try inLoop { loop throws in
                // Settled later, so that all of the chain is there by then.
                let (promise, resolver) = Promise<Int>.pending("Test.swift", 1)
                end(promise)
                resolver.reject(error)
                try loop.run()
            }
        }
    }

    private let report = ["unhandled rejection: Flaw(number: 1) (promise made at Test.swift:1)"]

    @Test func isReportedIfItIsNotCaught() throws {
        #expect(try lines { _ = $0.catch(only: Flaw(2)) {} } == report)
        #expect(try lines { _ = $0.catch(only: PromiseError.self) { _ in } } == report)
        let two = try lines { _ = $0.catch(only: Flaw(2)) {}.catch(only: PromiseError.self) { _ in } }
        #expect(two == report)
    }

    @Test func isReportedIfItIsThereAlready() throws {
        let lines = try logged {
            try inLoop { loop throws in
                let finalizer = Promise<Int>(error: Flaw(1)).catch(only: Flaw(2)) {}
                try loop.run()
                withExtendedLifetime(finalizer) {}
            }
        }
        #expect(lines.count == 1)
    }

    @Test func isNotIfItWasMatched() throws {
        #expect(try lines { _ = $0.catch(only: Flaw(1)) {} } == [])
        #expect(try lines { _ = $0.catch(only: Flaw(2)) {}.catch(only: Flaw.self) { _ in } } == [])
    }

    @Test func isNotIfACatchFollows() throws {
        #expect(try lines { $0.catch(only: Flaw(2)) {}.catch { _ in } } == [])
    }

    @Test func isLoggedByCauterize() throws {
        let lines = try lines { $0.catch(only: Flaw(2)) {}.cauterize() }
        let line = #line - 1
        let text = "cauterized: Flaw(number: 1) (Promise<()> made at Test.swift:1, cauterized at \(#fileID):\(line))"
        #expect(lines == [text])
    }

    @Test func isReportedOnceDespiteFinally() throws {
        var runs = 0
        let lines = try lines {
            let finalizer = $0.catch(only: Flaw(2)) {}
            finalizer.finally { runs += 1 }
            finalizer.finally { runs += 1 }
        }
        #expect(lines == report)
        #expect(runs == 2)
    }

    @Test func isHandledBesideFinally() throws {
        var runs = 0
        let lines = try lines {
            let finalizer = $0.catch(only: Flaw(2)) {}
            finalizer.finally { runs += 1 }
            finalizer.catch { _ in }
            finalizer.finally { runs += 1 }
        }
        #expect(lines == [])
        #expect(runs == 2)
    }

    @Test func isHandledByALateHandler() throws {
        var runs = 0
        let lines = try logged {
            try inLoop { loop throws in
                let finalizer = Promise<Int>(error: Flaw(1)).catch(only: Flaw(2)) {}
                finalizer.finally { runs += 1 }
                try loop.run()
                finalizer.finally { runs += 1 }
                finalizer.catch { _ in }
                try loop.run()
            }
        }
        #expect(lines == [])
        #expect(runs == 2)
    }

    @Test func cancellationIsNotReported() throws {
        #expect(try lines(PromiseError.cancelled) { _ = $0.catch(only: Flaw(2)) {} } == [])
        #expect(try lines(PromiseError.cancelled) { _ = $0.catch(only: PromiseError.self) { _ in } } == [])
    }

    @Test func aFinallyIsReleasedWithALoopThatEnds() {
        let tally = Tally()
        let (promise, resolver) = Promise<Int>.pending()
        let lines = logged {
            inLoop { _ in
                let token = tally.token()
                promise.catch(only: Flaw(2)) {}.finally { token.use() }
            }
            resolver.reject(Flaw(1))
        }
        #expect(tally.alive == 0)
        #expect(lines == ["an event loop ended with 1 undelivered handler"])
    }

    /// The loop of a thread that has ended must be there still when its waiters are let go.
    @Test(arguments: [false, true]) func aFinallyOfAThreadThatHasEnded(isReady: Bool) {
        let tally = Tally()
        let pair = Promise<Int>.pending()
        let reports = Shared<LogRecorder?>(nil)
        TestThread.run {
            let thread = pthread_self()
            reports.change {
                $0 = LogRecorder(where: { event in
                    if case .undrivenLoop = event { return false }
                    return pthread_equal(pthread_self(), thread) != 0
                })
            }
            let token = tally.token()
            pair.promise.catch(only: Flaw(2)) {}.finally { token.use() }
            if isReady { pair.resolver.reject(Flaw(1)) }
        }
        reports.value?.stop()
        pair.resolver.reject(Flaw(1))
        #expect(tally.alive == 0)
        #expect(reports.value?.lines == ["an event loop ended with 1 undelivered handler"])
    }
}
