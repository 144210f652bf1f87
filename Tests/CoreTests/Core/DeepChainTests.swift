import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Chains of a million links on a stack of 8 MB or less: nothing may recurse along them.
@Suite(.serialized) struct DeepChainTests {
    #if DEBUG
    // The frames of a debug build fill the stack within 20,000.
    private let length = scaled(125_000)
    #else
    private let length = scaled(1_000_000)
    #endif

    private func chain(from start: Promise<Int>) -> Promise<Int> {
        var promise = start
        for _ in 0..<length { promise = promise.map { $0 + 1 } }
        return promise
    }

    /// `start` at the end of that many links: each promise follows the one before.
    private func links(from start: Promise<Int>, _ loop: EventLoop) throws -> Promise<Int> {
        var promise = start
        for _ in 0..<length {
            let last = promise
            promise = Promise.value(()).then { last }
            try loop.turn(.poll)
        }
        return promise
    }

    @Test func settle() throws {
        inLoop { _ in
            let (start, resolver) = Promise<Int>.pending()
            let end = chain(from: start)
            resolver.fulfill(0)
            expect(end, gives: length)
        }
    }

    @Test func reject() throws {
        inLoop { _ in
            let (start, resolver) = Promise<Int>.pending()
            let end = chain(from: start)
            resolver.reject(Flaw(1))
            expect(end, failsWith: Flaw(1))
        }
    }

    @Test func abandon() throws {
        let lines = logged {
            inLoop { _ in
                let end = { chain(from: Promise { _ in }) }()
                expect(end, failsWith: PromiseError.abandoned)
            }
        }
        expectEqual(lines.count, 1)
    }

    @Test func endOfTheLoopWithTheResolverHeld() {
        let (start, resolver) = Promise<Int>.pending()
        let lines = logged {
            inLoop { _ in _ = chain(from: start) }
        }
        expectEqual(lines, ["an event loop ended with \(length) undelivered handlers"])
        // The ended loop refuses the first one, and with it those after it.
        resolver.fulfill(0)
        expectEqual(start.settledValue, 0)
    }

    @Test func endOfTheLoopWithTheFirstReady() {
        let lines = logged {
            inLoop { _ in
                let (start, resolver) = Promise<Int>.pending()
                _ = chain(from: start)
                resolver.fulfill(0)
            }
        }
        expectEqual(lines, ["an event loop ended with \(length) undelivered handlers"])
    }

    @Test func endOfTheLoopWithATimerAtTheStart() {
        let lines = logged {
            inLoop { _ in _ = chain(from: after(.seconds(1)).map { 0 }.asPromise()) }
        }
        expectEqual(lines, ["an event loop ended with \(length + 1) undelivered handlers"])
    }

    @Test func allHeldAndThenReleased() throws {
        try inLoop { loop throws in
            let (start, resolver) = Promise<Int>.pending()
            var all = [start]
            for _ in 0..<length { all.append(all[all.count - 1].map { $0 + 1 }) }
            resolver.fulfill(0)
            try loop.run()
            expectEqual(all[length].settledValue, length)
            all = []
        }
    }

    @Test func handlersThatHoldThePromiseBefore() throws {
        try inLoop { loop throws in
            let (start, resolver) = Promise<Int>.pending()
            var promise = start
            for _ in 0..<length {
                let before = promise
                promise = before.map { value in withExtendedLifetime(before) { value + 1 } }
            }
            resolver.fulfill(0)
            expect(promise, gives: length)
        }
    }

    @Test func linksSettled() throws {
        try inLoop { loop throws in
            let (start, resolver) = Promise<Int>.pending()
            let end = try links(from: start, loop)
            expect(end.isPending)
            resolver.fulfill(1)
            try loop.run()
            expect(end.settledValue == 1 && start.settledValue == 1)
        }
    }

    @Test func linksRejected() throws {
        try inLoop { loop throws in
            let (start, resolver) = Promise<Int>.pending()
            let end = try links(from: start, loop)
            resolver.reject(Flaw(2))
            try loop.run()
            expect(end.flaw == Flaw(2) && start.flaw == Flaw(2))
        }
    }

    @Test func linksReleasedFromTheStart() throws {
        try inLoop { loop throws in
            var (start, resolver): (Promise<Int>?, Resolver<Int>) = Promise<Int>.pending()
            let end = try links(from: start!, loop)
            start = nil
            resolver.fulfill(3)
            try loop.run()
            expectEqual(end.settledValue, 3)
        }
    }

    @Test func linksAbandoned() throws {
        let lines = try logged {
            try inLoop { loop throws in
                let end = try { try links(from: Promise<Int>.pending().promise, loop) }()
                try loop.run()
                expect(end.error as? PromiseError == .abandoned)
            }
        }
        expectEqual(lines.count, 1)
    }

    @Test func aMillionHandlersOfOnePromise() throws {
        try inLoop { loop throws in
            let (promise, resolver) = Promise<Int>.pending()
            var calls = 0
            for index in 0..<length {
                promise.map { value in
                    if calls == index { calls += value }
                }.ignoringErrors()
            }
            resolver.fulfill(1)
            try loop.run()
            expectEqual(calls, length)
        }
    }
}
