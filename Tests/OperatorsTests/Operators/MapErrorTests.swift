@testable import PromisesTestSupport

private struct Wrapped: Error {
    let inner: any Error

    init(_ inner: any Error) { self.inner = inner }
}

struct MapErrorTests {
    private let loop = EventLoop.current

    @Test(.inLoop) func replacesTheError() throws {
        expect(Promise<Int>(error: Flaw(1)).mapError { _ in Flaw(2) }, failsWith: Flaw(2))
        let wrapped = Promise<Int>(error: Flaw(1)).mapError(Wrapped.init)
        #expect(throws: Wrapped.self) { try hang(wrapped) }
        expect((wrapped.error as? Wrapped)?.inner as? Flaw == Flaw(1))
        let many = Promise<Int>(error: Flaw(1)).mapError { error in
            let number = (error as! Flaw).number
            return Flaw(number + 10)
        }
        expect(many, failsWith: Flaw(11))
    }

    @Test(.inLoop) func theOriginRemains() throws {
        var line: UInt = 0
        let lines = try loggedInLoop { loop throws in
            line = #line + 1
            _ = Promise<Int>(error: Flaw(1)).mapError { _ in Flaw(2) }
            try loop.run()
        }
        expectEqual(lines, ["unhandled rejection: Flaw(number: 2) (promise made at \(#fileID):\(line))"])
    }
}

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
