@testable import PromisesTestSupport

struct TapErrorTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func seesTheErrorAndPassesItOn() {
        var seen: [Int] = []
        let promise = Promise<Int>(error: Flaw(1)).tapError { seen.append(($0 as! Flaw).number) }
        expect(promise, failsWith: Flaw(1))
        expect(Promise.value(2).tapError { _ in seen.append(2) }, gives: 2)
        expectEqual(seen, [1])
    }

    @Test(.inLoop) func doesNotHandleIt() throws {
        let lines = try loggedInLoop { loop throws in
            _ = Promise<Int>(error: Flaw(1)).tapError { _ in }
            try loop.run()
        }
        expectEqual(lines.count, 1)
    }

    @Test(.inLoop, arguments: [false, true]) func theCancellationOfTheChain(isFromAbove: Bool) throws {
        var seen: [String] = []
        let (source, resolver) = Promise<Int>.pending()
        let end =
            source
            .tapError { _ in seen.append("default") }
            .tapError(policy: .allErrors) { seen.append("\($0)") }
            .map { $0 }
        if isFromAbove { source.cancel() } else { end.cancel() }
        try loop.run()
        expectEqual(seen, ["\(PromiseError.cancelled)"])
        expect(end.isCancelled && source.isCancelled)
        withExtendedLifetime(resolver) {}
    }
}
