import Promises
import Reactor
import Testing

@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// The operators record themselves under their names, with the line of the call. In processes of their own, since
/// tracing is the process's.
@Suite struct OperatorTraceTests {
    @Test func chains() async {
        await #expect(processExitsWith: .success) { try Bodies.chains() }
    }

    @Test func guarantees() async {
        await #expect(processExitsWith: .success) { try Bodies.guarantees() }
    }

    @Test func ends() async {
        await #expect(processExitsWith: .success) { try Bodies.ends() }
    }
}

private enum Bodies {
    static func chains() throws {
        conf.trace = true
        inLoop { _ in
            let line: UInt = #line
            let (promise, resolver) = Promise<[Int]>.pending()
            let chain = promise.compactMap { $0 }
                .getThen { _ in Promise.value(1) }
                .validate { _ in true }
                .mapError { $0 }
                .tapError { _ in }
                .recover(only: Flaw.self) { Promise(error: $0) }
                .recover(only: Flaw()) { promise }
                .mapValues { $0 }
                .flatMapValues { [$0] }
                .compactMapValues { $0 }
                .filterValues { _ in true }
                .sortedValues()
                .sortedValues { $0 < $1 }
                .asVoid()
                .recover(only: Flaw.self) { _ in }
                .recover(only: Flaw()) {}
            let names = [
                "compactMap", "getThen", "validate", "mapError", "tapError", "recover", "recover", "mapValues",
                "flatMapValues", "compactMapValues", "filterValues", "sortedValues", "sortedValues", "asVoid",
                "recover",
                "recover",
            ]
            let steps = names.enumerated().map { "\($1) at \(at(line + 2 + UInt($0)))" }
            let trace = (["made at \(at(line + 1))"] + steps).joined(separator: " → ")
            #expect(String(reflecting: chain) == "Promise<()>.pending (\(trace))")
            let next: UInt = #line + 1
            let (first, last) = (promise.firstValue { _ in true }, promise.lastValue { _ in true })
            #expect(String(reflecting: first).hasSuffix(" → firstValue at \(at(next)))"))
            #expect(String(reflecting: last).hasSuffix(" → lastValue at \(at(next)))"))
            #expect(String(reflecting: promise.firstValue).hasSuffix("→ firstValue)"))
            #expect(String(reflecting: promise.lastValue).hasSuffix("→ lastValue)"))
            resolver.fulfill([])
            #expect(throws: Never.self) { try hang(chain) }
        }
    }

    static func guarantees() throws {
        conf.trace = true
        inLoop { _ in
            let line: UInt = #line
            let chain = after(.seconds(1)).map { [1] }
                .getThen { _ in Guarantee.value(1) }
                .mapValues { $0 }
                .flatMapValues { [$0] }
                .compactMapValues { $0 }
                .filterValues { _ in true }
                .sortedValues()
                .sortedValues { $0 < $1 }
                .firstValue { _ in true }
            let names = [
                "getThen", "mapValues", "flatMapValues", "compactMapValues", "filterValues", "sortedValues",
                "sortedValues", "firstValue",
            ]
            let steps = names.enumerated().map { " → \($1) at \(at(line + 2 + UInt($0)))" }
            #expect(String(reflecting: chain).hasSuffix("\(steps.joined()))"))
            expect(chain, gives: 1)
        }
    }

    static func ends() throws {
        conf.trace = true
        var line: UInt = 0
        let lines = try logged {
            try inLoop { loop throws in
                line = #line
                let promise = Promise<Int>(error: Flaw(1))
                let finalizer = promise.catch(only: Flaw(2)) {}
                finalizer.catch(only: PromiseError.self) { _ in }
                    .cauterize()
                _ = finalizer.catch(only: Flaw(2)) {}
                try loop.run()
            }
        }
        let steps = "Promise<()> made at \(at(line + 1)) → catch at \(at(line + 2)) → "
        #expect(
            lines == [
                "unhandled rejection: Flaw(number: 1) (\(steps)catch at \(at(line + 5)))",
                "cauterized: Flaw(number: 1) (\(steps)catch at \(at(line + 3)), cauterized at \(at(line + 4)))",
            ])
    }
}
