@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// Operators are recorded under their names, with the line of the call. In a separate process, since tracing is
/// process-wide.
struct OperatorTraceTests {
    @Test(.ownThread) func traces() async {
        await #expect(processExitsWith: .success) {
            conf.trace = true
            try Bodies.chains()
            try Bodies.guarantees()
            try Bodies.ends()
        }
    }
}

private enum Bodies {
    static func chains() throws {
        inLoop { _ in
            let line: UInt = #line
            let (promise, resolver) = Promise<[Int]>.pending()
            // In three statements, since the compiler checks the types of one as a whole.
            let recovered = promise.compactMap { $0 }
                .tapError { _ in }
                .recover(only: Flaw.self) { Promise(error: $0) }
                .recover(only: Flaw()) { promise }
                .recover { Promise(error: $0) }
            let cleaned = recovered.then { Promise.value($0) }
                .map { $0 }
                .get { _ in }
                .tap { _ in }
                .ensure {}
                .ensureThen { after(.zero) }
            let chain = cleaned.thenMap { Promise.value($0) }
                .thenReduce(0) { Promise.value($0 + $1) }
                .done { _ in }
                .asVoid()
                .catch(only: Flaw.self) { _ in }
            let names = [
                "compactMap", "tapError", "recover", "recover", "recover", "then", "map", "get", "tap", "ensure",
                "ensureThen", "thenMap", "thenReduce", "done", "asVoid", "catch",
            ]
            let steps = names.enumerated().map { "\($1) at \(at(line + 3 + UInt($0)))" }
            let trace = (["made at \(at(line + 1))"] + steps).joined(separator: " → ")
            expectEqual(String(reflecting: chain), "Promise<()>.pending (\(trace))")
            expect(String(reflecting: promise).hasSuffix(".pending (made at \(at(line + 1)))"))
            resolver.fulfill([])
            #expect(throws: Never.self) { try hang(chain) }
            expectEqual(String(reflecting: chain), "Promise<()>.fulfilled(()) (\(trace))")
        }
    }

    static func guarantees() throws {
        inLoop { _ in
            let line: UInt = #line
            let chain = after(.seconds(1)).map { 1 }
                .get { _ in }
                .tap { _ in }
                .then { Guarantee.value($0) }
                .ensure {}
                .delay(.zero)
                .done { _ in }
                .asVoid()
            let names = ["after", "map", "get", "tap", "then", "ensure", "delay", "done", "asVoid"]
            let steps = zip(names, [1] + Array(1...8)).map { "\($0) at \(at(line + UInt($1)))" }
            expectEqual(String(reflecting: chain), "Guarantee<()>.pending (\(steps.joined(separator: " → ")))")
        }
    }

    static func ends() throws {
        var line: UInt = 0
        let lines = try loggedInLoop { loop throws in
            line = #line
            let promise = Promise<Int>(error: Flaw(1))
            let finalizer = promise.catch(only: Flaw(2)) {}
            finalizer.catch(only: PromiseError.self) { _ in }
                .cauterize()
            _ = finalizer.catch(only: Flaw(2)) {}
            try loop.run()
        }
        let steps = "Promise<()> made at \(at(line + 1)) → catch at \(at(line + 2)) → "
        expectEqual(
            lines,
            [
                "unhandled rejection: Flaw(number: 1) (\(steps)catch at \(at(line + 5)))",
                "cauterized: Flaw(number: 1) (\(steps)catch at \(at(line + 3)), cauterized at \(at(line + 4)))",
            ])
    }
}
