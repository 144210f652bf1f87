import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// `LazyPromise`: started once, by its first waiter.
@Suite struct LazyPromiseTests {
    @Test func theFirstHandlerStartsIt() throws {
        try inLoop { loop throws in
            var starts = 0
            let lazy = LazyPromise { resolver in
                starts += 1
                resolver.fulfill(1)
            }
            #expect(!lazy.isStarted && lazy.result == nil && lazy.isPending && starts == 0)
            #expect("\(lazy)" == "LazyPromise(…Int)")
            var seen: [Int] = []
            lazy.done { seen.append($0) }.orFail()
            #expect(lazy.isStarted && starts == 1 && lazy.settledValue == 1)
            lazy.map { $0 + 1 }.done { seen.append($0) }.orFail()
            try loop.run()
            #expect(seen == [1, 2] && starts == 1)
            #expect("\(lazy)" == "Promise(1)")
        }
    }

    @Test func everyWayOfAskingStartsIt() throws {
        try inLoop { loop throws in
            let ways: [(LazyPromise<Int>) -> Void] = [
                { $0.pipe { _ in } }, { _ = $0.asPromise() }, { _ = Promise($0) }, { $0.catch { _ in } },
                { $0.ensure {}.ignoringErrors() }, { when(fulfilled: [$0]).ignoringErrors() },
                { when(fulfilled: $0, Promise.value(1)).ignoringErrors() }, { race([$0]).ignoringErrors() },
                { $0.map(on: nil) { $0 }.ignoringErrors() }, { _ = try? $0.wait() },
                { lazy in Promise.value(1).then { _ in lazy }.ignoringErrors() },
                { lazy in firstly { lazy }.ignoringErrors() },
            ]
            for (index, way) in ways.enumerated() {
                var starts = 0
                let lazy = LazyPromise { resolver in
                    starts += 1
                    resolver.fulfill(1)
                }
                way(lazy)
                try loop.run()
                #expect(starts == 1 && lazy.settledValue == 1, "way \(index)")
            }
        }
    }

    @Test func errorsOfTheBody() {
        inLoop { _ in
            let failing = LazyPromise<Int> { _ in throw Flaw(1) }
            expect(failing, failsWith: Flaw(1))
            let settled = LazyPromise<Int> { resolver in
                resolver.fulfill(2)
                throw Flaw(1)
            }
            expect(settled, gives: 2)
        }
    }

    @Test func theBodyIsReleasedOnceItHasRun() {
        inLoop { _ in
            let tally = Tally()
            var resolver: Resolver<Int>?
            let lazy = { [token = tally.token()] in
                LazyPromise<Int> {
                    token.use()
                    resolver = $0
                }
            }()
            #expect(tally.alive == 1)
            let promise = lazy.asPromise()
            #expect(tally.alive == 0 && promise.isPending)
            resolver?.fulfill(3)
            #expect(promise.settledValue == 3 && lazy.settledValue == 3)
        }
    }

    @Test func theBodyMayAskForIt() throws {
        try inLoop { loop throws in
            let box = Box()
            box.lazy = LazyPromise { resolver in
                box.lazy?.done { box.seen = $0 }.orFail()
                resolver.fulfill(4)
            }
            expect(box.lazy!, gives: 4)
            try loop.run()
            #expect(box.seen == 4)
            box.lazy = nil
        }
    }

    private final class Box {
        var lazy: LazyPromise<Int>?
        var seen = 0
    }

    @Test func oneThatIsNeverStartedSaysNothing() {
        let tally = Tally()
        let lines = logged {
            _ = { [token = tally.token()] in LazyPromise<Int> { _ in token.use() } }()
        }
        #expect(lines == [] && tally.alive == 0)
    }

    @Test func oneThatIsAbandonedNamesItsLine() {
        inLoop { _ in
            let line: UInt = #line + 2
            let lines = logged {
                let lazy = LazyPromise<Int> { _ in }
                expect(lazy, failsWith: PromiseError.abandoned)
            }
            #expect(lines.count == 1 && lines[0].contains("made at \(#fileID):\(line) was abandoned"))
        }
    }
}
