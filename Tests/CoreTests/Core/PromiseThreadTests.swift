import Glibc
import Promises
import Reactor
import Synchronization
import TestSupport
import Testing

@testable import PromisesTestSupport

private final class Counter: Sendable {
    private let value = Atomic<Int>(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add() { value.add(1, ordering: .relaxed) }
}

@Suite struct PromiseThreadTests {
    @Test func handlersRunOnTheThreadThatAttachedThem() throws {
        try EventLoop.withLoop { loop throws in
            let hold = loop.hold()
            let here = pthread_self()
            var elsewhere = 0
            for _ in 0..<scaled(100) {
                let (promise, resolver) = Promise<Int>.pending()
                let thread = TestThread { resolver.fulfill(1) }
                let ended = promise.map { value in
                    if pthread_equal(pthread_self(), here) == 0 { elsewhere += 1 }
                    return value
                }.ensure { if pthread_equal(pthread_self(), here) == 0 { elsewhere += 1 } }
                expectEqual(try hang(ended), 1)
                thread.join()
            }
            expectEqual(elsewhere, 0)
            hold.cancel()
        }
    }

    @Test func eachThreadHasItsOwnHandlersOfOnePromise() {
        let (promise, resolver) = Promise<Int>.pending()
        let ready = Gate()
        let right = Shared(0)
        let threads = (0..<4).map { _ in
            TestThread {
                let here = pthread_self()
                let hold = EventLoop.current.hold()
                var calls = 0
                promise.done { _ in if pthread_equal(pthread_self(), here) != 0 { calls += 1 } }.orFail()
                let ended = promise.done { _ in if pthread_equal(pthread_self(), here) != 0 { calls += 1 } }
                ready.open()
                try? hang(ended)
                hold.cancel()
                let count = calls
                right.change { $0 += count }
            }
        }
        for _ in threads { ready.wait() }
        resolver.fulfill(1)
        for thread in threads { thread.join() }
        expectEqual(right.value, 8)
    }

    @Test func twoResolversRaceAndOneWins() {
        for round in 0..<scaled(500) {
            let (promise, resolver) = Promise<Int>.pending()
            let calls = Shared(0)
            promise.pipe { _ in calls.change { $0 += 1 } }
            let threads = (0..<2).map { index in
                TestThread { (round + index) % 2 == 0 ? resolver.fulfill(index) : resolver.reject(Flaw(index)) }
            }
            for thread in threads { thread.join() }
            expectEqual(calls.value, 1)
            expect(promise.isResolved)
        }
    }

    /// A promise is settled on its own thread while another one attaches a handler, and then drops the last reference but one.
    @Test func aHandlerOfAReferenceThatIsDroppedAtOnceIsCalled() throws {
        // Only in a release build does a promise without other references settle in another way than the rest.
        #if DEBUG
        let rounds = 500
        #else
        let rounds = scaled(100_000)
        #endif
        try EventLoop.withLoop { loop throws in
            let box = Shared<Promise<Int>?>(nil)
            let calls = Counter()
            let thread = TestThread {
                var (left, spins) = (rounds, 0)
                while left > 0 {
                    guard let promise = box.change({ $0.take() }) else {
                        sched_yield()
                        continue
                    }
                    let isLate = Self.attach(to: promise, after: spins) { calls.add() }
                    // Homes in on the moment of the settlement.
                    spins = max(0, isLate ? spins - 1 : spins + 1)
                    left -= 1
                }
            }
            for _ in 0..<rounds {
                let (source, resolver) = Promise<Int>.pending()
                let ended = Self.handOver(source.map { $0 }, in: box)
                resolver.fulfill(1)
                expectEqual(try hang(ended), 1)
                while box.value != nil { sched_yield() }
            }
            thread.join()
            expectEqual(calls.count, rounds)
        }
    }

    /// - Returns: whether the promise had settled before.
    private static func attach(
        to promise: Promise<Int>, after spins: Int, _ handler: @escaping @Sendable () -> Void
    ) -> Bool {
        for _ in 0..<spins { pause.store(0, ordering: .relaxed) }
        let isLate = promise.isResolved
        promise.pipe { _ in handler() }
        return isLate
    }

    private static let pause = Atomic(0)

    /// Keeps no reference to `promise`, which has a handler of this thread then.
    private static func handOver(_ promise: Promise<Int>, in box: Shared<Promise<Int>?>) -> Promise<Int> {
        let ended = promise.map { $0 }
        box.value = promise
        return ended
    }

    @Test func anInnerPromiseOfAnotherThread() throws {
        try EventLoop.withLoop { loop throws in
            let hold = loop.hold()
            for round in 0..<scaled(250) {
                let box = Shared<Promise<Int>?>(nil)
                let made = Gate()
                let adopted = Gate()
                let thread = TestThread {
                    let (promise, resolver) = Promise<Int>.pending()
                    box.change { $0 = promise.map { $0 + 1 } }
                    made.open()
                    if round % 2 == 0 { adopted.wait() }
                    resolver.fulfill(round)
                    try? EventLoop.current.run()
                }
                made.wait()
                let inner = box.value!
                let outer = Promise.value(()).then { inner }
                if round % 2 == 0 {
                    try loop.turn(.poll)
                    adopted.open()
                }
                expectEqual(try hang(outer), round + 1)
                thread.join()
            }
            hold.cancel()
        }
    }

    @Test func anInnerPromiseOfThisThreadSettledByAnother() throws {
        try EventLoop.withLoop { loop throws in
            let hold = loop.hold()
            for round in 0..<scaled(500) {
                let (inner, resolver) = Promise<Int>.pending()
                let thread = TestThread { round % 3 == 0 ? resolver.reject(Flaw(round)) : resolver.fulfill(round) }
                // It links while the other thread settles.
                let outer = Promise.value(()).then { inner }.then { Promise.value($0) }
                    .recover { _ in Promise.value(round) }
                expectEqual(try hang(outer), round)
                thread.join()
            }
            hold.cancel()
        }
    }

    /// Threads attach to shared promises while others settle them: on each thread, the handlers of one promise run in
    /// the order in which it attached them, none is lost, and none runs elsewhere.
    @Test func orderHoldsWhileOthersSettle() {
        let rounds = scaled(400)
        let attached = 12
        let pairs = (0..<rounds).map { _ in Promise<Int>.pending() }
        let wrong = Counter()
        let total = Counter()
        let threads = (0..<4).map { number in
            TestThread {
                let here = pthread_self()
                var left = 0
                for (index, pair) in pairs.enumerated() {
                    var last = -1
                    for step in 0..<attached {
                        left += 1
                        if step == attached / 2 && index % 4 == number { pair.resolver.fulfill(index) }
                        let handler = { (_: Int) in
                            if last != step - 1 || pthread_equal(pthread_self(), here) == 0 { wrong.add() }
                            last = step
                            left -= 1
                            total.add()
                        }
                        switch (step + number) % 3 {
                        case 0: pair.promise.done(handler).orFail()
                        case 1: _ = pair.promise.map(handler)
                        default: pair.promise.get(handler).orFail()
                        }
                    }
                    try? EventLoop.current.turn(.poll)
                }
                let hold = EventLoop.current.hold()
                while left > 0 { try? EventLoop.current.turn(.wait) }
                hold.cancel()
            }
        }
        for thread in threads { thread.join() }
        expectEqual(wrong.count, 0)
        expectEqual(total.count, rounds * attached * 4)
    }
}

@Suite(.serialized) struct ThreadEndTests {
    /// What the thread of `body` logs at its end.
    private func logOfThread(_ body: @escaping @Sendable () -> Void) -> [String] {
        let thread = Shared<pthread_t?>(nil)
        let recorder = LogRecorder(where: { event in
            guard case .undeliveredHandlers = event, let thread = thread.value else { return false }
            return pthread_equal(pthread_self(), thread) != 0
        })
        defer { recorder.stop() }
        TestThread.run {
            let here = pthread_self()
            thread.change { $0 = here }
            body()
        }
        return recorder.lines
    }

    @Test func withHandlersThatWait() {
        let tally = Tally()
        let (promise, resolver) = Promise<Int>.pending()
        let lines = logOfThread {
            for _ in 0..<3 {
                let token = tally.token()
                promise.map { value in
                    token.use()
                    return value
                }.ignoringErrors()
            }
        }
        // Three maps, and the catch of each.
        expectEqual(lines, ["an event loop ended with 6 undelivered handlers"])
        expectEqual(tally.alive, 0)
        resolver.fulfill(1)
        expectEqual(promise.settledValue, 1)
    }

    @Test func withHandlersThatAreReady() {
        let tally = Tally()
        let lines = logOfThread {
            let token = tally.token()
            Promise.value(1).done { _ in token.use() }.ignoringErrors()
        }
        expectEqual(lines, ["an event loop ended with 2 undelivered handlers"])
        expectEqual(tally.alive, 0)
    }

    @Test func withHandlersThatAreInTheMail() {
        let tally = Tally()
        let (promise, resolver) = Promise<Int>.pending()
        let lines = logOfThread {
            let token = tally.token()
            promise.done { _ in token.use() }.ignoringErrors()
            TestThread.run { resolver.fulfill(1) }
        }
        expectEqual(lines, ["an event loop ended with 2 undelivered handlers"])
        expectEqual(tally.alive, 0)
    }

    @Test func thoseThatWaitElsewhereAreTold() throws {
        try EventLoop.withLoop { loop throws in
            let hold = loop.hold()
            let (source, resolver) = Promise<Int>.pending()
            let derived = Shared<Promise<Int>?>(nil)
            let lines = logOfThread { derived.change { $0 = source.map { $0 + 1 } } }
            expectEqual(lines.count, 1)
            let here = derived.value!.map { $0 + 1 }
            derived.change { $0 = nil }
            resolver.fulfill(1)
            expect(here, failsWith: PromiseError.loopEnded)
            hold.cancel()
        }
    }

    @Test func whileAnotherSettles() {
        let tally = Tally()
        let recorder = LogRecorder(where: { if case .undeliveredHandlers = $0 { true } else { false } })
        for _ in 0..<scaled(1000) {
            let (promise, resolver) = Promise<Int>.pending()
            let attached = Gate()
            let thread = TestThread {
                for _ in 0..<3 {
                    let token = tally.token()
                    promise.done { _ in token.use() }.ignoringErrors()
                }
                attached.open()
            }
            attached.wait()
            resolver.fulfill(1)
            thread.join()
        }
        recorder.stop()
        expectEqual(tally.alive, 0)
    }
}
