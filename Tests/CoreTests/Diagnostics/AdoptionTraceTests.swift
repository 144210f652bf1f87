@testable import PromisesTestSupport

private func at(_ line: UInt) -> String { "\(#fileID):\(line)" }

/// Traces of a promise that waits for the one a handler has returned. In a separate process, since tracing is
/// process-wide.
struct AdoptionTraceTests {
    @Test(.ownThread) func traces() async {
        await #expect(processExitsWith: .success) {
            try Bodies.showsWhatAHandlerHasReturned()
            try Bodies.ofEveryOperatorThatWaits()
            try Bodies.nested()
            try Bodies.recursionShowsTheNewestAndStaysFlat()
            try Bodies.recursionThroughTheMiddleIsTakenApart()
            try Bodies.promisesThatAwaitEachOther()
        }
    }
}

// Functions, since a macro's closure may not contain everything.
private enum Bodies {
    static func showsWhatAHandlerHasReturned() throws {
        conf.trace = true
        try inLoop { loop throws in
            let (inner, resolver) = Promise<Int>.pending()
            let line: UInt = #line
            let chain = Guarantee.value(1).then { _ in inner.map { $0 } }
                .map { $0 }
            try loop.run()
            let awaited = "made at \(at(line - 1)) → map at \(at(line + 1))"
            let trace = "then at \(at(line + 1)) [awaits: \(awaited)] → map at \(at(line + 2))"
            expectEqual(String(reflecting: chain), "Promise<Int>.pending (\(trace))")
            resolver.fulfill(1)
            expect(chain, gives: 1)
            // It awaits nothing any more.
            expectEqual(
                String(reflecting: chain),
                "Promise<Int>.fulfilled(1) (then at \(at(line + 1)) → map at \(at(line + 2)))")
        }
    }

    static func ofEveryOperatorThatWaits() throws {
        conf.trace = true
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
        conf.trace = true
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
        }
    }

    static func recursionShowsTheNewestAndStaysFlat() throws {
        conf.trace = true
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

    static func recursionThroughTheMiddleIsTakenApart() throws {
        conf.trace = true
        inLoop { _ in
            func count(_ left: Int) -> Promise<Int> {
                Promise.value(left).then { left -> Promise<Int> in left == 0 ? .value(0) : count(left - 1) }.map {
                    $0 + 1
                }
            }
            let rounds = scaled(100_000)
            expect(count(rounds), gives: rounds + 1)
            expect(EventLoop.pendingPromises.isEmpty)
        }
    }

    static func promisesThatAwaitEachOther() throws {
        conf.trace = true
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
}
