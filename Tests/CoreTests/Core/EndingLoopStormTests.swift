import CLinux

@testable import PromisesTestSupport

/// Threads whose loops end at random moments, while their promises live on: other threads cancel and settle them, attach
/// to them, wait for them and release them meanwhile. The sanitizers see what they touch.
@Suite(.serialized, .ownThread) struct EndingLoopStormTests {
    private static let seed = environmentNumber("STORM_SEED").map(UInt64.init) ?? 1
    private static let threads = 3

    @Test func loopsEndWhileOthersUseTheirPromises() {
        let left = Exchange()
        let rounds = environmentNumber("STORM_ROUNDS") ?? scaled(20_000)
        let undelivered = LogRecorder(where: { _ in left.isOfStorm })
        defer { undelivered.stop() }
        let crew = (0..<Self.threads).map { number in
            TestThread {
                left.noteThread()
                var random = SplitMix64(Self.seed &+ UInt64(number))
                for _ in 0..<rounds / Self.threads { Round(left, random.next()).run() }
            }
        }
        for thread in crew { thread.join() }
        expect(left.ended.value > rounds / 2)
        left.clear()
    }

    /// What loops have left for other threads.
    private final class Exchange: Sendable {
        struct Entry: Sendable {
            let promise: Promise<Int>
            let resolver: Resolver<Int>?
        }
        private let entries = Shared<[Entry]>([])
        private let threads = Shared<Set<pid_t>>([])
        let ended = Shared(0)

        func noteThread() {
            let thread = clinux_gettid()
            threads.change { _ = $0.insert(thread) }
        }
        var isOfStorm: Bool { threads.value.contains(clinux_gettid()) || EventLoop.isEndingOnThisThread }

        func put(_ entry: Entry, at place: Int) {
            let before = entries.change { entries -> Entry? in
                if entries.count < 32 {
                    entries.append(entry)
                    return nil
                }
                defer { entries[place] = entry }
                return entries[place]
            }
            withExtendedLifetime(before) {}
        }

        func look(at place: Int) -> Entry? { entries.change { $0.isEmpty ? nil : $0[place % $0.count] } }

        func take(at place: Int) -> Entry? {
            entries.change { $0.isEmpty ? nil : $0.remove(at: place % $0.count) }
        }

        func clear() { while take(at: 0) != nil {} }
    }

    /// One loop from its beginning to its end.
    private final class Round {
        private let left: Exchange
        private var random: SplitMix64
        private var own: [Promise<Int>] = []

        init(_ left: Exchange, _ seed: UInt64) {
            self.left = left
            random = SplitMix64(seed)
        }

        func run() {
            switch random.below(4) {
            case 0: EventLoop.withLoop { _ in EventLoop.withLoop(live) }
            case 1:
                nonisolated(unsafe) let round = self
                TestThread.run {
                    round.left.noteThread()
                    round.live(EventLoop.ofCurrentThread)
                }
            default: EventLoop.withLoop(live)
            }
            // Of a loop that has ended.
            for _ in 0..<random.below(4) { use() }
            own = []
            left.ended.change { $0 += 1 }
        }

        private func live(_ loop: EventLoop) {
            for _ in 0..<1 + random.below(8) {
                if random.once(in: 3) { make() } else { use() }
                for _ in 0..<random.below(3) { try? loop.turn(.poll) }
            }
            if random.once(in: 2) { own = [] }
        }

        // MARK: Steps

        private func some() -> Promise<Int> {
            if let promise = own.isEmpty || random.once(in: 2)
                ? left.look(at: random.below(32))?.promise : random.pick(own)
            {
                return promise
            }
            return .value(1)
        }

        private func make() {
            var resolver: Resolver<Int>?
            let promise: Promise<Int>
            switch random.below(8) {
            case 0, 1:
                let pair = Promise<Int>.pending()
                (promise, resolver) = (pair.promise, pair.resolver)
                if random.once(in: 3) { pair.resolver.onCancel { withExtendedLifetime(pair.resolver) {} } }
            case 2: promise = circle()
            case 3:
                let inner = some()
                promise = Promise.value(1).then { _ in inner }
            case 4: promise = when(fulfilled: [some(), some()]).map { $0[0] }
            case 5: promise = race(some(), some(), after(.zero).map { 1 }.asPromise())
            case 6:
                let inner = some()
                promise = some().ensureThen { when(resolved: [inner]).map { _ in } }
            default: promise = some().map { $0 &+ 1 }.ensure {}
            }
            if random.once(in: 2) { own.append(promise) }
            left.put(Exchange.Entry(promise: promise, resolver: resolver), at: random.below(32))
        }

        /// Promises that wait for one another, which nothing of the loop leads to.
        private func circle() -> Promise<Int> {
            final class Box { var promise: Promise<Int>! }
            let box = Box()
            box.promise = Promise.value(1).then { _ in box.promise.map { $0 } }
            return box.promise
        }

        private func use() {
            let promise = some()
            switch random.below(10) {
            case 0: promise.cancel()
            case 1: promise.map { $0 }.ensure {}.ignoringErrors()
            case 2: promise.map { $0 }.cancel()
            case 3: for _ in 0..<20 { promise.map { $0 }.cancel() }
            case 4: _ = try? hang(promise, timeout: .zero)
            case 5: promise.pipe { _ in }
            case 6: race(promise, .value(1)).ignoringErrors()
            case 7: left.look(at: random.below(32))?.resolver?.fulfill(7)
            case 8: withExtendedLifetime(left.take(at: random.below(32))) {}
            default: _ = promise.cancelAndWait()
            }
        }
    }
}
