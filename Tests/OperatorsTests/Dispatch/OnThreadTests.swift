import Glibc
import PromiseKitNames
import Promises
import Reactor
import Synchronization
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Settling, running and cancelling against each other on several threads. Under ThreadSanitizer and AddressSanitizer.
@Suite struct OnThreadTests {
    private let rounds = scaled(2_000)

    /// Both threads are running before either begins.
    private func together(_ one: @escaping @Sendable () -> Void, _ other: @escaping @Sendable () -> Void) {
        let line = Counted()
        let begin: @Sendable () -> Void = {
            line.add(1)
            while line.value < 2 { sched_yield() }
        }
        let thread = TestThread {
            begin()
            one()
        }
        begin()
        other()
        thread.join()
    }

    private func isCancelled(_ promise: Promise<Int>) -> Bool { promise.error as? PromiseError == .cancelled }

    @Test func cancelAgainstSettle() {
        let tally = Tally()
        for _ in 0..<rounds {
            let (source, resolver) = Promise<Int>.pending()
            let mapped = { [token = tally.token()] in source.map(on: nil) { token.with($0 + 1) } }()
            let end = mapped.map(on: nil) { $0 + 1 }
            together {
                resolver.fulfill(1)
            } _: {
                end.cancel()
            }
            expect(end.settledValue == 3 || isCancelled(end))
            expect(mapped.isResolved && source.isResolved)
        }
        expectEqual(tally.alive, 0)
    }

    @Test func cancelAgainstSettleOnALoop() throws {
        for _ in 0..<rounds / 10 {
            let (source, resolver) = Promise<Int>.pending()
            let box = Shared<Promise<Int>?>(nil)
            let isThere = Gate()
            let owner = TestThread {
                // Belongs to this thread's loop, and is settled there.
                let mapped = source.map { $0 + 1 }
                box.change { $0 = mapped.map(on: nil) { $0 + 1 } }
                isThere.open()
                while mapped.isPending || EventLoop.current.isReady { try? EventLoop.current.turn(.poll) }
            }
            isThere.wait()
            let end = box.value!
            together {
                resolver.fulfill(1)
            } _: {
                end.cancel()
            }
            owner.join()
            expect(end.settledValue == 3 || isCancelled(end))
        }
    }

    @Test func cancelAgainstTheJob() throws {
        let pool = try ThreadPool(threads: 2)
        let tally = Tally()
        for _ in 0..<rounds {
            let (source, resolver) = Promise<Int>.pending()
            let end = { [token = tally.token()] in
                source.map(on: pool) { token.with($0 + 1) }.then(on: pool) { Promise.value($0 + 1) }
            }()
            let isSettled = Gate()
            end.pipe { _ in isSettled.open() }
            resolver.fulfill(1)
            end.cancel()
            isSettled.wait()
            expect(end.settledValue == 3 || isCancelled(end))
        }
        pool.shutDown()
        expectEqual(tally.alive, 0)
    }

    @Test func cancelAgainstWhatAHandlerHasReturned() throws {
        let pool = try ThreadPool(threads: 1)
        let tally = Tally()
        for _ in 0..<rounds {
            let (inner, resolver) = Promise<Int>.pending()
            let end = Promise.value(1).then(on: pool) { [token = tally.token()] _ in
                token.use()
                return inner
            }
            together {
                resolver.fulfill(3)
            } _: {
                end.cancel()
            }
            // Pending first: the pool may settle it between two looks.
            expect(end.isPending || isCancelled(end) || end.settledValue == 3)
        }
        pool.shutDown()
        expectEqual(tally.alive, 0)
    }

    @Test func cleanupRunsOnceWhateverComesFirst() throws {
        let pool = try ThreadPool(threads: 2)
        for round in 0..<rounds {
            let runs = Counted()
            let (source, resolver) = Promise<Int>.pending()
            let dispatcher: (any Dispatcher)? = round.isMultiple(of: 2) ? pool : nil
            let end = source.ensure(on: dispatcher) { runs.add(1) }
            let isSettled = Gate()
            end.pipe { _ in isSettled.open() }
            together {
                resolver.fulfill(1)
            } _: {
                end.cancel()
            }
            isSettled.wait()
            expect(end.settledValue == 1 || isCancelled(end))
            if dispatcher == nil { expectEqual(runs.value, 1) }
            while runs.value == 0 { sched_yield() }
            expectEqual(runs.value, 1)
        }
        pool.shutDown()
    }

    @Test func errorsAreLookedAtWhileACancellationComes() {
        for _ in 0..<rounds {
            let (source, resolver) = Promise<Int>.pending()
            let end = source.recover(on: Immediate()) { _ in Promise.value(5) }
            together {
                resolver.reject(Flaw(1))
            } _: {
                end.cancel()
            }
            expect(end.settledValue == 5 || isCancelled(end))
        }
    }

    @Test func twoCancelAtOnce() {
        for _ in 0..<rounds {
            let runs = Counted()
            let (source, resolver) = Promise<Int>.pending()
            let end = source.tap(on: nil) { _ in runs.add(1) }.map(on: nil) { $0 }
            together {
                end.cancel()
            } _: {
                end.cancel()
            }
            expect(isCancelled(end) && isCancelled(source) && runs.value == 1)
            resolver.fulfill(1)
        }
    }

    @Test func attachingAgainstSettling() {
        for _ in 0..<rounds {
            let (source, resolver) = Promise<Int>.pending()
            let mapped = source.map(on: nil) { $0 + 1 }
            let sum = Counted()
            together {
                resolver.fulfill(1)
            } _: {
                for _ in 0..<3 { mapped.done(on: nil) { value in sum.add(value) }.orFail() }
            }
            expectEqual(sum.value, 6)
        }
    }

    /// A number for several threads, with a lock that ThreadSanitizer knows.
    private final class Counted: Sendable {
        private let number = Atomic(0)

        var value: Int { number.load(ordering: .acquiring) }

        func add(_ step: Int) { number.add(step, ordering: .acquiringAndReleasing) }
    }
}
