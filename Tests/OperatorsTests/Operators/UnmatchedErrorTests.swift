@testable import PromisesTestSupport

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
