@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// Traces of a promise that waits for the one a handler has returned. In a separate process, since tracing is
/// process-wide.
struct AdoptionTraceTests {
    @Test(.ownThread) func traces() async {
        await #expect(processExitsWith: .success) {
            conf.trace = true
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
