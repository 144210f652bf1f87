import PromiseKitNames
import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// `on: nil`: inline, where the promise is settled.
@Suite(.serialized) struct OnNilTests {
    #if DEBUG
    private let length = scaled(125_000)
    #else
    private let length = scaled(1_000_000)
    #endif

    @Test func runsInsideTheCallThatSettlesOrAttaches() {
        inLoop { _ in
            let seen = Shared<[Int]>([])
            let (promise, resolver) = Promise<Int>.pending()
            let end = promise.map(on: nil) { value in
                seen.change { $0.append(value) }
                return value + 1
            }.then(on: nil) { Promise.value($0 * 2) }.get(on: nil) { value in seen.change { $0.append(value) } }
            expectEqual(seen.value, [])
            resolver.fulfill(1)
            expect(seen.value == [1, 4] && end.settledValue == 4)
            expectEqual(end.map(on: nil) { $0 + 1 }.settledValue, 5)
        }
    }

    @Test func runsOnTheThreadThatSettles() {
        let (promise, resolver) = Promise<Int>.pending()
        let mapped = promise.map(on: nil) { _ in thisThread() }
        let settler = Shared<UInt>(0)
        TestThread.run {
            settler.change { $0 = thisThread() }
            resolver.fulfill(1)
        }
        expectEqual(mapped.settledValue, settler.value)
    }

    @Test func oneAfterTheOtherAndNotOneInsideTheOther() {
        inLoop { _ in
            let log = Shared<[String]>([])
            let (promise, resolver) = Promise<Int>.pending()
            let (second, secondResolver) = Promise<Int>.pending()
            second.done(on: nil) { _ in log.change { $0.append("second") } }.orFail()
            promise.done(on: nil) { _ in
                log.change { $0.append("first begins") }
                secondResolver.fulfill(2)
                log.change { $0.append("first ends") }
            }.orFail()
            resolver.fulfill(1)
            expectEqual(log.value, ["first begins", "first ends", "second"])
        }
    }

    private func chain(from start: Promise<Int>) -> Promise<Int> {
        var promise = start
        for _ in 0..<length { promise = promise.map(on: nil) { $0 + 1 } }
        return promise
    }

    @Test func aChainSettledBeforeOrAfter() {
        inLoop { _ in
            expectEqual(chain(from: .value(0)).settledValue, length)
            let (start, resolver) = Promise<Int>.pending()
            let end = chain(from: start)
            resolver.fulfill(0)
            expectEqual(end.settledValue, length)
        }
    }

    @Test func aChainRejected() {
        inLoop { _ in
            let (start, resolver) = Promise<Int>.pending()
            let end = chain(from: start)
            resolver.reject(Flaw(1))
            expectEqual(end.flaw, Flaw(1))
        }
    }

    @Test func aChainCancelledFromItsEnd() {
        inLoop { _ in
            let (start, resolver) = Promise<Int>.pending()
            let end = chain(from: start)
            end.cancel()
            expect(end.error as? PromiseError == .cancelled && start.error as? PromiseError == .cancelled)
            resolver.fulfill(0)
        }
    }

    @Test func aChainOfCleanupsCancelledFromItsEnd() {
        inLoop { _ in
            let (start, resolver) = Promise<Int>.pending()
            let runs = Shared(0)
            var end = start
            for _ in 0..<length { end = end.ensure(on: nil) { runs.change { $0 += 1 } } }
            end.cancel()
            expectEqual(runs.value, length)
            expect(end.error as? PromiseError == .cancelled && start.error as? PromiseError == .cancelled)
            resolver.fulfill(0)
        }
    }

    @Test func aChainThatIsReleased() {
        let tally = Tally()
        let lines = logged {
            inLoop { _ in
                let token = tally.token()
                _ = {
                    var end = Promise<Int> { _ in }
                    for _ in 0..<length { end = end.map(on: nil) { token.with($0 + 1) } }
                }()
            }
        }
        expect(lines.count == 1 && tally.alive == 0)
    }

    @Test func followingInARow() {
        inLoop { _ in
            let (start, resolver) = Promise<Int>.pending()
            var end = start
            for _ in 0..<length {
                let last = end
                end = Promise.value(()).then(on: nil) { last }
            }
            resolver.fulfill(7)
            expectEqual(end.settledValue, 7)
        }
    }

    @Test func followingInARowCancelledFromItsEnd() {
        inLoop { _ in
            let (start, resolver) = Promise<Int>.pending()
            var end = start
            for _ in 0..<length {
                let last = end
                end = Promise.value(()).then(on: nil) { last }
            }
            end.cancel()
            expect(end.error as? PromiseError == .cancelled && start.error as? PromiseError == .cancelled)
            resolver.fulfill(7)
        }
    }

    @Test func withADispatcherThatRunsJobsAtOnce() {
        inLoop { _ in
            let (start, resolver) = Promise<Int>.pending()
            var end = start
            for _ in 0..<length { end = end.map(on: Immediate()) { $0 + 1 } }
            resolver.fulfill(0)
            expectEqual(end.settledValue, length)
        }
    }
}
