import Promises
import Reactor
import TestSupport
import Testing

@testable import PromisesTestSupport

/// Objects that cancel a promise in their deinit, and hold one another by the closures of those promises.
@Suite(.inLoop) struct DeinitCancellationTests {
    private final class Owner {
        private let promise: Promise<Int>
        init(_ promise: Promise<Int>) { self.promise = promise }
        deinit { promise.cancel() }
    }

    private func row(_ count: Int, _ source: Promise<Int>, _ tally: Tally) -> Promise<Int> {
        var promise = source
        for _ in 0..<count {
            let owner = Owner(promise)
            let token = tally.token()
            promise = source.map { value in
                withExtendedLifetime(owner) {}
                return token.with(value)
            }
        }
        return promise
    }

    @Test func aLongRowIsCancelledWithoutRecursion() {
        TestThread.run {
            EventLoop.withLoop { _ in
                let tally = Tally()
                let (source, resolver) = Promise<Int>.pending()
                let last = self.row(scaled(100_000), source, tally)
                last.cancel()
                expect(tally.alive == 0 && source.isRejected)
                withExtendedLifetime(resolver) {}
            }
        }
    }

    @Test func eachIsCancelledInsideItsOwnCall() {
        final class Witness {
            let promise: Promise<Int>
            let note: (Bool) -> Void
            init(_ promise: Promise<Int>, _ note: @escaping (Bool) -> Void) {
                (self.promise, self.note) = (promise, note)
            }
            deinit {
                promise.cancel()
                note(promise.isRejected)
            }
        }
        var seen: [Bool] = []
        let (source, resolver) = Promise<Int>.pending()
        source.pipe { _ in }
        var promise = source.map { $0 }
        for _ in 0..<3 {
            let witness = Witness(promise) { seen.append($0) }
            promise = source.map { value in withExtendedLifetime(witness) { value } }
        }
        promise.cancel()
        expectEqual(seen, [true, true, true])
        withExtendedLifetime(resolver) {}
    }

    @Test func aHangInOneOfThemLetsTheOthersGo() {
        final class Hanger {
            let promise: Promise<Int>
            let signal: Promise<Int>
            let note: (Bool) -> Void
            init(_ promise: Promise<Int>, _ signal: Promise<Int>, _ note: @escaping (Bool) -> Void) {
                (self.promise, self.signal, self.note) = (promise, signal, note)
            }
            deinit {
                promise.cancel()
                _ = try? hang(signal)
                note(signal.isResolved)
            }
        }
        var seen: [Bool] = []
        let (source, resolver) = Promise<Int>.pending()
        source.pipe { _ in }
        let (signal, signalResolver) = Promise<Int>.pending()
        final class Signaller {
            let resolver: Resolver<Int>
            init(_ resolver: Resolver<Int>) { self.resolver = resolver }
            deinit { resolver.fulfill(1) }
        }
        let inner = {
            let signaller = Signaller(signalResolver)
            return source.map { value in withExtendedLifetime(signaller) { value } }
        }()
        let outer = {
            let hanger = Hanger(inner, signal) { seen.append($0) }
            return source.map { value in withExtendedLifetime(hanger) { value } }
        }()
        outer.cancel()
        expectEqual(seen, [true])
        withExtendedLifetime(resolver) {}
    }
}
