import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// A promise that settles as another: whichever is held, settled or released first.
@Suite struct AdoptionTests {
    private func followed(_ loop: EventLoop) throws -> (outer: Promise<Int>, inner: Promise<Int>, Resolver<Int>) {
        let (inner, resolver) = Promise<Int>.pending()
        let outer = Promise.value(()).then { inner }
        try loop.run()
        return (outer, inner, resolver)
    }

    @Test func onlyTheOuterIsHeld() throws {
        try inLoop { loop throws in
            let (outer, _, resolver) = try followed(loop)
            resolver.fulfill(1)
            expect(outer, gives: 1)
        }
    }

    @Test func onlyTheInnerIsHeld() throws {
        try inLoop { loop throws in
            let (_, inner, resolver) = try followed(loop)
            resolver.fulfill(1)
            expectEqual(inner.settledValue, 1)
        }
    }

    @Test func onlyTheResolverIsHeld() throws {
        try inLoop { loop throws in
            let tally = Tally()
            var seen = 0
            let resolver = try {
                let token = tally.token()
                let (outer, _, resolver) = try followed(loop)
                outer.done {
                    token.use()
                    seen = $0
                }.orFail()
                return resolver
            }()
            expectEqual(tally.alive, 1)
            resolver.fulfill(1)
            try loop.run()
            expectEqual(seen, 1)
            expectEqual(tally.alive, 0)
        }
    }

    @Test func nothingIsHeld() throws {
        var line: UInt = 0
        let lines = try logged {
            try inLoop { loop throws in
                line = #line + 1
                let (inner, resolver) = Promise<Int>.pending()
                var seen: (any Error)?
                Promise.value(()).then { inner }.catch { seen = $0 }
                try withExtendedLifetime(resolver) { try loop.run() }
                _ = consume resolver
                try loop.run()
                expect(seen as? PromiseError == .abandoned)
            }
        }
        expectEqual(lines.count, 1)
        expectEqual(lines.first?.hasPrefix("the promise made at \(#fileID):\(line) was abandoned"), true)
    }

    @Test func aRejectionOfTheInnerIsReportedWithItsLine() throws {
        var line: UInt = 0
        let lines = try logged {
            try inLoop { loop throws in
                line = #line + 1
                let (inner, resolver) = Promise<Int>.pending()
                let outer = Promise.value(()).then { inner }
                try loop.run()
                resolver.reject(Flaw(1))
                try loop.run()
                withExtendedLifetime(outer) {}
            }
        }
        expectEqual(lines, ["unhandled rejection: Flaw(number: 1) (promise made at \(#fileID):\(line))"])
    }

    @Test func anInnerWithHandlersOfItsOwn() throws {
        try inLoop { loop throws in
            var order: [String] = []
            let (inner, resolver) = Promise<Int>.pending()
            inner.done { _ in order.append("first") }.orFail()
            let outer = Promise.value(()).then { inner }
            outer.done { _ in order.append("outer") }.orFail()
            try loop.run()
            inner.done { _ in order.append("second") }.orFail()
            resolver.fulfill(1)
            try loop.run()
            // The handlers of each promise in order; the outer's need one step more.
            expectEqual(order, ["first", "second", "outer"])
        }
    }

    @Test func twoResolversOfAPromiseThatIsFollowed() throws {
        try inLoop { loop throws in
            let (outer, inner, resolver) = try followed(loop)
            let copy = resolver
            copy.fulfill(1)
            resolver.fulfill(2)
            resolver.reject(Flaw())
            try loop.run()
            expect(outer.settledValue == 1 && inner.settledValue == 1)
        }
    }

    @Test func aHandlerThatIsLinkedBeforeItRuns() throws {
        // The inner promise is a `map` that still waits: it settles the outer one when it runs.
        try inLoop { loop throws in
            let (source, resolver) = Promise<Int>.pending()
            let tally = Tally()
            let outer = {
                let token = tally.token()
                return Promise.value(()).then {
                    source.map { value -> Int in
                        token.use()
                        return value + 1
                    }
                }
            }()
            try loop.run()
            expectEqual(tally.alive, 1)
            resolver.fulfill(1)
            expect(outer, gives: 2)
            expectEqual(tally.alive, 0)
        }
    }

    @Test func aHandlerThatIsLinkedAndNeverRuns() throws {
        let tally = Tally()
        let lines = try logged {
            try inLoop { loop throws in
                let (source, resolver) = Promise<Tally.Token>.pending()
                let token = tally.token()
                Promise.value(()).then {
                    source.map { value -> Int in
                        token.use()
                        return 1
                    }
                }.orFail()
                try loop.run()
                // The loop ends before it can run.
                resolver.fulfill(tally.token())
            }
        }
        expectEqual(tally.alive, 0)
        expectEqual(lines, ["an event loop ended with 2 undelivered handlers"])
    }
}

/// Circles, some of whose promises are linked and some wait; APlusCircleTests has the others.
@Suite struct ReturnedSelfAdoptionTests {
    @Test func throughOneThatWaitsAndIsLinked() throws {
        try inLoop { loop throws in
            let (gate, resolver) = Promise<Int>.pending()
            var last: Promise<Int>?
            let first = gate.then { _ in last! }
            first.ignoringErrors()
            let second = Promise.value(1).then { _ in first }
            try loop.run()
            // `second` waits for `first`, which has a handler; now it is linked.
            last = Promise.value(1).then { _ in second }
            try loop.run()
            resolver.fulfill(1)
            try loop.run()
            for promise in [first, second, last!] { expect(promise.error as? PromiseError == .returnedSelf) }
        }
    }

    @Test func throughOneThatIsLinkedAndThenWaits() throws {
        try inLoop { loop throws in
            let (gate, resolver) = Promise<Int>.pending()
            var last: Promise<Int>?
            let first = gate.then { _ in last! }
            first.ignoringErrors()
            let (other, otherResolver) = Promise<Int>.pending()
            let second = other.then { _ in first }
            last = Promise.value(1).then { _ in second }
            try loop.run()
            // `second` is linked to `last`; now it waits for `first`, which has a handler.
            otherResolver.fulfill(1)
            try loop.run()
            resolver.fulfill(1)
            try loop.run()
            for promise in [first, second, last!] { expect(promise.error as? PromiseError == .returnedSelf) }
        }
    }

    @Test func throughThreeOfWhichOneIsLinkedAndWaitsForOneWithHandlers() throws {
        try inLoop { loop throws in
            let starts = (0..<3).map { _ in Promise<Void>.pending() }
            var promises: [Promise<Int>] = []
            promises = (0..<3).map { index in starts[index].promise.then { promises[(index + 1) % 3] } }
            promises[2].ignoringErrors()
            for start in starts {
                start.resolver.fulfill()
                try loop.run()
            }
            let errors = promises.map { $0.error as? PromiseError }
            expectEqual(errors, [.returnedSelf, .returnedSelf, .returnedSelf])
            promises = []
        }
    }

    @Test(.ownThread) func aGuaranteeTraps() async {
        await #expect(processExitsWith: .failure) {
            inLoop { _ in
                var guarantee: Guarantee<Int>?
                guarantee = Guarantee.value(1).then { _ in guarantee! }
                hang(guarantee!)
            }
        }
        await #expect(processExitsWith: .failure) {
            inLoop { _ in
                var guarantee: Guarantee<Int>?
                guarantee = Promise<Int>(error: Flaw()).recover { _ in guarantee! }
                hang(guarantee!)
            }
        }
    }
}
