@testable import PromisesTestSupport

/// When a loop ends, it releases the captures of handlers that wait for other threads on its own thread, before other
/// code that uses them can continue elsewhere. The counts are not atomic, so a release on a second thread loses some.
/// Under ThreadSanitizer too.
@Suite(.serialized) struct EndedLoopRaceTests {
    private static let handlers = 500
    private static var rounds: Int { isSanitized ? 5 : 20 }

    /// Counts releases. Not Sendable: it belongs to the thread, actor or task that created it.
    private final class Books {
        var count = 0
        private let sink: Shared<Int>?

        init(_ sink: Shared<Int>? = nil) { self.sink = sink }

        deinit { sink?.value = count }

        func bump(_ times: Int) {
            for _ in 0..<times { count += 1 }
        }
    }

    private final class Token {
        private let books: Books
        init(_ books: Books) { self.books = books }
        deinit { books.count += 1 }
        func use() {}
    }

    private static func attach(_ books: Books, to promise: Promise<Int>, _ count: Int = handlers) {
        for number in 0..<count {
            let token = Token(books)
            switch number % 4 {
            case 0: promise.done { _ in token.use() }.ignoringErrors()
            case 1: promise.map { _ in token.use() }.map { 1 }.ignoringErrors()
            case 2: promise.catch { _ in token.use() }.finally { token.use() }
            default: race(promise.map { _ in token.use() }, Promise<Void> { _ in }).ignoringErrors()
            }
        }
    }

    private actor Keeper {
        private let home: LoopRemote
        private let books = Books()
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: LoopRemote) { self.home = home }

        func attach(to promise: Promise<Int>) { EndedLoopRaceTests.attach(books, to: promise) }
        func bump(_ times: Int, _ begun: Gate? = nil) {
            begun?.open()
            books.bump(times)
        }
        var count: Int { books.count }
    }

    private static let bumps = 200_000

    @Test func twoThreadsSettleWhatAnEndedThreadWaitedFor() {
        for round in 0..<Self.rounds {
            let (one, settleOne) = Promise<Int>.pending()
            let (other, settleOther) = Promise<Int>.pending()
            let count = Shared(0)
            let start = Gate()
            let settlers = [settleOne, settleOther].map { resolver in
                TestThread {
                    start.wait()
                    resolver.fulfill(1)
                }
            }
            TestThread.run {
                let books = Books(count)
                Self.attach(books, to: one)
                Self.attach(books, to: other)
                // Every other round while the thread ends.
                if round % 2 == 0 { start.open(2) }
            }
            if round % 2 == 1 { start.open(2) }
            for settler in settlers { settler.join() }
            expectEqual(count.value, 2 * Self.handlers)
        }
    }

    @Test func anActorGoesOnAfterItsLoop() async throws {
        for _ in 0..<Self.rounds {
            let (promise, resolver) = Promise<Int>.pending()
            let keepers = Shared<[Keeper]>([])
            let made = Gate()
            let thread = TestThread {
                let loop = EventLoop.current
                let keeper = Keeper(on: loop.remote)
                try! loop.run { await keeper.attach(to: promise) }
                keepers.change { $0 = [keeper] }
                made.open()
            }
            thread.join()
            let keeper = keepers.value[0]
            let settler = TestThread { resolver.fulfill(1) }
            await keeper.bump(Self.bumps)
            settler.join()
            expectEqual(await keeper.count, Self.handlers + Self.bumps)
        }
    }

    @Test func aTaskGoesOnAfterItsLoop() async throws {
        for _ in 0..<Self.rounds {
            let (promise, resolver) = Promise<Int>.pending()
            let count = Shared(0)
            let attached = Gate()
            let (proceed, source) = AsyncStream<Void>.makeStream()
            let worker = try EventLoop.spawn()
            let task = Task.detached(executorPreference: worker) {
                let books = Books(count)
                Self.attach(books, to: promise)
                attached.open()
                for await _ in proceed { books.bump(Self.bumps) }
            }
            TestThread.run {
                attached.wait()
                worker.stop()
                worker.join()
            }
            let settler = TestThread { resolver.fulfill(1) }
            source.yield()
            source.finish()
            await task.value
            settler.join()
            expectEqual(count.value, Self.handlers + Self.bumps)
        }
    }
}
