@testable import PromisesTestSupport

struct HangAtLoopEndTests {
    private final class AtEnd {
        private let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
        deinit { body() }
    }

    /// The ways to hold an object until the loop ends.
    enum Holder: CaseIterable {
        case readyJob, timer, waiter, waiterOfWaiter, combinator, dispatched, asyncBody
    }

    /// Makes `object` live until the end of this thread's loop, or until the promise has settled, if that comes first.
    private static func keep(_ object: AtEnd, by holder: Holder, _ promise: Promise<Int>) {
        switch holder {
        case .readyJob: EventLoop.current.enqueue { _ = object }
        case .timer: EventLoop.current.schedule(after: .seconds(1000)) { _ = object }
        case .waiter: promise.done { _ in _ = object }.ignoringErrors()
        case .waiterOfWaiter: promise.map { $0 }.ensure { _ = object }.ignoringErrors()
        case .combinator:
            when(fulfilled: promise, after(.seconds(1000)).asPromise()).done { _ in _ = object }.ignoringErrors()
        case .dispatched: promise.map(on: nil) { $0 }.done { _ in _ = object }.ignoringErrors()
        case .asyncBody:
            Promise { () async throws -> Int in try await promise.value }.done { _ in _ = object }.ignoringErrors()
        }
    }

    @Test(arguments: Holder.allCases) func anEndedLoopRefusesToWait(holder: Holder) {
        let (promise, resolver) = Promise<Int>.pending()
        var failure: (any Error)?
        var hasRun = false
        var waiters = 0
        EventLoop.withLoop { loop in
            let object = AtEnd {
                loop.enqueue { hasRun = true }
                let before = waiterCount(of: promise)
                do { _ = try hang(promise, timeout: .seconds(1)) } catch { failure = error }
                waiters = waiterCount(of: promise) - before
            }
            Self.keep(object, by: holder, promise)
            // The body waits on a thread of its own, which must not begin to wait between the two counts.
            if holder == .asyncBody { spin { waiterCount(of: promise) > 0 } }
            loop.enqueue { hasRun = true }
        }
        expectEqual(failure as? SystemError, SystemError(.epollWait, EBADF))
        expectEqual(
            "\(failure as? SystemError, default: "")", "epoll_wait the loop has ended: Bad file descriptor (EBADF)")
        expect(!hasRun)
        expectEqual(waiters, 0)
        resolver.fulfill(1)
    }

    @Test func whatHasSettledIsReturnedNevertheless() {
        let (promise, resolver) = Promise<Int>.pending()
        var value: Int?
        EventLoop.withLoop { loop in
            let object = AtEnd { value = try? hang(promise) }
            loop.enqueue { _ = object }
            resolver.fulfill(1)
        }
        expectEqual(value, 1)
    }

    /// Another thread settles or cancels, while the loop ends, promises that the `deinit`s use. In a separate process:
    /// a thread that released what another one used ended it with a fault.
    @Test(.ownThread) func anotherThreadSettlesMeanwhile() async {
        await #expect(processExitsWith: .success) {
            conf.logHandler = { _ in }
            let desk = Desk()
            let thread = TestThread { desk.serve() }
            let tally = Tally()
            var dice = SplitMix64(1)
            for round in 0..<scaled(4000) {
                let (holder, act) = (Holder.allCases[round % 7], round / 7 % 8)
                let (one, resolver) = Promise<Int>.pending()
                let (other, otherResolver) = Promise<Int>.pending()
                var isEnding = false
                EventLoop.withLoop { loop in
                    let token = tally.token()
                    let object = AtEnd {
                        token.use()
                        if !isEnding { return }
                        switch act {
                        case 0:
                            desk.put { resolver.fulfill(1) }
                            _ = try? hang(one)
                        case 1:
                            desk.put { otherResolver.reject(Flaw()) }
                            _ = try? hang(other, timeout: .seconds(1))
                        case 2: resolver.fulfill(2)
                        case 3:
                            desk.put { otherResolver.fulfill(3) }
                            let token = tally.token()
                            for promise in [one, other] { promise.done { _ in token.use() }.ignoringErrors() }
                        case 4: other.map { $0 }.cancel()
                        case 5:
                            let token = tally.token()
                            loop.remote.submit { token.use() }
                        case 6:
                            desk.put { other.cancel() }
                            EventLoop.withLoop { _ in _ = try? hang(other, timeout: .microseconds(10)) }
                        default: race(one, other).timeout(.seconds(1)).ignoringErrors()
                        }
                    }
                    Self.keep(object, by: holder, one)
                    if act > 1 && dice.once(in: 2) { desk.put { resolver.fulfill(4) } }
                    isEnding = true
                }
                desk.put { resolver.fulfill(5) }
                desk.put { otherResolver.fulfill(6) }
            }
            desk.close()
            thread.join()
            // A body may end on its own thread.
            spin { tally.alive == 0 }
        }
    }
}

/// A thread waits here for closures, which it calls a few steps after their arrival.
private final class Desk: Sendable {
    private let jobs = Shared<(waiting: [@Sendable () -> Void], isClosed: Bool)>(([], false))

    func put(_ job: @escaping @Sendable () -> Void) { jobs.change { $0.waiting.append(job) } }

    func close() { jobs.change { $0.isClosed = true } }

    func serve() {
        var dice = SplitMix64(2)
        while true {
            let (job, isClosed) = jobs.change { jobs in
                (jobs.waiting.isEmpty ? nil : jobs.waiting.removeFirst(), jobs.isClosed)
            }
            if job == nil && isClosed { return }
            for _ in 0..<dice.below(100) { _ = jobs.value.isClosed }
            job?()
        }
    }
}
