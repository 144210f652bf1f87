import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// `async(.promise)`.
@Suite struct AsyncOnDispatcherTests {
    private let pool = ThreadPool.shared

    private func number(_ number: Int) throws -> Int {
        if number < 0 { throw Flaw(number) }
        return number
    }

    @Test func aClosureThatThrowsGivesAPromise() {
        inLoop { _ in
            expect(pool.async(.promise) { try number(1) }, gives: 1)
            expect(pool.async(.promise) { try number(-1) }, failsWith: Flaw(-1))
            expect(
                pool.async(.promise) {
                    let sum = try number(1) + number(2)
                    return sum * 2
                }, gives: 6)
            let asked: Promise<Int> = pool.async(.promise) { 3 }
            expect(asked, gives: 3)
        }
    }

    @Test func oneThatDoesNotGivesAGuarantee() {
        inLoop { _ in
            let guarantee: Guarantee<Int> = pool.async(.promise) {
                let two = 2
                return two * 2
            }
            expect(guarantee, gives: 4)
            // Which of the two it is without being told.
            let sure = pool.async(.promise) { 5 }
            #expect(type(of: sure) == Guarantee<Int>.self)
            expect(sure, gives: 5)
            let ran = Gate()
            pool.async(.promise) { ran.open() }
            ran.wait()
        }
    }

    @Test func onAnotherLoop() throws {
        try EventLoop.withLoop { loop throws in
            let promise = loop.remote.async(.promise) { try number(7) }
            #expect(promise.isPending)
            try loop.run()
            #expect(promise.settledValue == 7)
        }
    }

    @Test func cancelledBeforeItHasBegun() {
        inLoop { _ in
            let (shelf, tally) = (Shelf(), Tally())
            let promise = { [token = tally.token()] in
                shelf.async(.promise) { () throws -> Int in
                    Issue.record("it ran")
                    return token.with(1)
                }
            }()
            promise.cancel()
            #expect(promise.error as? PromiseError == .cancelled && tally.alive == 0)
            shelf.run()
        }
    }

    @Test func onAnyDispatcher() {
        inLoop { _ in
            let dispatchers: [any Dispatcher] = [Immediate(), pool]
            for dispatcher in dispatchers { expect(dispatcher.async(.promise) { try number(1) }, gives: 1) }
        }
    }
}
