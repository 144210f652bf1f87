@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// Operators are recorded under their names, with the line of the call, and with the promise that a handler has returned.
/// In a separate process, since tracing is process-wide.
struct OperatorTraceTests {
    @Test(.ownThread) func traces() async {
        await #expect(processExitsWith: .success) {
            conf.trace = true
            try Bodies.chains()
            try Bodies.guarantees()
            try Bodies.ends()
            try Bodies.dispatched()
            try Bodies.ofEveryOperatorThatWaits()
            try Bodies.nested()
            try Bodies.recursionShowsTheNewestAndStaysFlat()
            try Bodies.promisesThatAwaitEachOther()
            try Bodies.whatASeriesWaitsFor()
        }
    }
}

// Functions, since a macro's closure may not contain everything.
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

    static func dispatched() throws {
        try inLoop { _ throws in
            let line: UInt = #line
            let (promise, resolver) = Promise<Int>.pending()
            let end = promise.map(on: nil) { $0 }
                .then(on: ThreadPool.shared) { Promise.value($0) }
                .tap(on: nil) { _ in }
                .recover(on: nil) { _ in Promise.value(1) }
            let steps = ["map", "then", "tap", "recover"].enumerated().map { "\($1) at \(at(line + 2 + UInt($0)))" }
            let trace = (["made at \(at(line + 1))"] + steps).joined(separator: " → ")
            expectEqual(String(reflecting: end), "Promise<Int>.pending (\(trace))")
            expectEqual(EventLoop.pendingPromises.count, 5)
            let started = Guarantee(on: Shelf()) { 1 }
            expect(String(reflecting: started).contains("made at \(at(line + 10))"))
            let outer = Promise.value(1).then(on: nil) { _ in promise }
            expect(String(reflecting: outer).hasSuffix("[awaits: made at \(at(line + 1))])"))
            resolver.fulfill(1)
            expect(end, gives: 1)
        }
    }

    // MARK: What a promise waits for

    static func ofEveryOperatorThatWaits() throws {
        try inLoop { loop throws in
            let (inner, resolver) = Promise<Int>.pending()
            let (sure, seal) = Guarantee<Int>.pending()
            let (cleanup, finish) = Guarantee<Void>.pending()
            let line: UInt = #line
            func failed() -> Promise<Int> { Promise.value(1).map { _ in throw Flaw() } }
            let promises = [
                Promise.value(1).then { _ in inner },
                failed().recover { _ in inner },
                failed().recover { _ in sure }.asPromise(),
                Guarantee.value(1).then { _ in sure }.asPromise(),
                Promise.value(1).ensureThen { cleanup },
            ]
            try loop.run()
            for (index, awaited) in [3, 3, 2, 2, 1].enumerated() {
                let text = String(reflecting: promises[index])
                expect(
                    text.hasSuffix(
                        " at \(at(line + 3 + UInt(index))) [awaits: made at \(at(line - UInt(awaited)))])"))
            }
            resolver.fulfill(1)
            seal(1)
            finish(())
            expect(when(fulfilled: promises), gives: [1, 1, 1, 1, 1])
        }
    }

    static func nested() throws {
        try inLoop { loop throws in
            let (innermost, resolver) = Promise<Int>.pending()
            let line: UInt = #line
            func inner() -> Promise<Int> { Promise.value(1).then { _ in innermost }.map { $0 } }
            let chain = Promise.value(1).then { _ in inner() }.map { $0 }
            try loop.run()
            let deepest = "then at \(at(line + 1)) [awaits: made at \(at(line - 1))] → map at \(at(line + 1))"
            let trace = "then at \(at(line + 2)) [awaits: \(deepest)] → map at \(at(line + 2))"
            expectEqual(String(reflecting: chain), "Promise<Int>.pending (\(trace))")
            resolver.fulfill(1)
            expect(chain, gives: 1)
            // It awaits nothing any more.
            let ended = "then at \(at(line + 2)) → map at \(at(line + 2))"
            expectEqual(String(reflecting: chain), "Promise<Int>.fulfilled(1) (\(ended))")
        }
    }

    static func recursionShowsTheNewestAndStaysFlat() throws {
        try inLoop { loop throws in
            var rounds = 0
            var before = 0
            func serve() -> Promise<Void> {
                after(.seconds(1)).then { () -> Promise<Void> in
                    rounds += 1
                    if rounds == 1000 { before = residentBytes() }
                    return rounds < scaled(100_000) ? serve() : .value
                }
            }
            let line: UInt = #line - 6
            let served = serve()
            try loop.run { rounds == 10 }
            let round = "after at \(at(line)) → then at \(at(line))"
            expectEqual(String(reflecting: served), "Promise<()>.pending (\(round) [awaits: \(round)])")
            expect(EventLoop.pendingPromises.count <= 4)
            try hang(served)
            expect(isSanitized || residentBytes() - before < 1 << 20)
        }
    }

    static func promisesThatAwaitEachOther() throws {
        let lines = try loggedInLoop { loop throws in
            var later: Promise<Int>?
            let chain = Promise.value(1).then { _ in later! }
            later = chain.map { $0 }
            try loop.run()
            expect(chain.isPending)
            expect(String(reflecting: chain).count < 10_000)
        }
        expect(lines.count <= 1)
    }

    static func whatASeriesWaitsFor() throws {
        try inLoop { loop throws in
            let line: UInt = #line + 1
            let series = forEach([1, 2]) { number in after(.seconds(number)).named("nap \(number)").asPromise() }
            try loop.turn(.poll)
            let first = String(reflecting: series)
            precondition(first.contains("forEach at \(#fileID):\(line)"), first)
            precondition(first.contains("\"nap 1\""), first)
            hang(after(.milliseconds(1500)))
            let second = String(reflecting: series)
            precondition(second.contains("\"nap 2\""), second)
            try hang(series)
            let (round, resolver) = Promise<Bool>.pending()
            let endless = repeatWhile { round.named("the first") }
            precondition(String(reflecting: endless).contains("\"the first\""), "\(endless)")
            resolver.fulfill(false)
        }
    }
}
