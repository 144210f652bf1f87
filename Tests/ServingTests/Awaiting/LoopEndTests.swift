@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// The end of a loop, also by `stop()`: what waits there, and who waits for it.
@Suite(.serialized, .ownThread) struct LoopEndTests {
    @Test func whatOnlyItWouldHaveSettledIsRejected() throws {
        let lines = LogRecorder(where: { if case .undeliveredHandlers = $0 { true } else { false } })
        defer { lines.stop() }
        try EventLoop.withLoop { _ throws in
            let worker = try EventLoop.spawn()
            let (here, resolver) = Promise<Int>.pending()
            worker.submit {
                after(.seconds(3600)).map { 1 }.pipe { resolver.resolve($0) }
                worker.stop()
            }
            expect(here, failsWith: PromiseError.loopEnded)
            try hang(worker.ended, timeout: patience)
            // Loops of other tests may have ended like that meanwhile.
            expect(lines.lines.contains("an event loop ended with 1 undelivered handler"))
        }
    }

    @Test(.inRealTime) func aHangThereComesBackUnlessItIsOnAGuarantee() throws {
        let worker = try EventLoop.spawn()
        let (fate, resolver) = Promise<String>.pending()
        let (hanging, begun) = Guarantee<Void>.pending()
        worker.submit {
            begun(())
            let never = Promise<Void>.pending()
            var text = "fulfilled"
            do { try hang(never.promise) } catch { text = "\(error)" }
            withExtendedLifetime(never) {}
            hang(after(.milliseconds(20)))
            resolver.fulfill(text)
        }
        try hang(hanging, timeout: patience)
        worker.stop()
        expect(fate, gives: "\(PromiseError.loopEnded)")
        try hang(worker.ended, timeout: patience)
    }

    private actor Resident {
        private let home: LoopRemote
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: LoopRemote) { self.home = home }

        func rest() async { await pause().value }
        private func pause() -> Guarantee<Void> { after(.seconds(60)) }
    }

    @Test func aTaskThatAwaitsAGuaranteeNeverResumesAndThatIsReported() throws {
        let reports = LogRecorder(where: {
            guard case .awaitStalled(let promise, _) = $0 else { return false }
            return promise.callSite?.file.hasSuffix("LoopEndTests.swift") != false
        })
        defer { reports.stop() }
        let worker = try EventLoop.spawn()
        let resident = Resident(on: worker)
        Task.detached(executorPreference: worker) { await resident.rest() }
        // The task and its timer have begun when this answer arrives.
        for _ in 0..<3 { EventLoop.withLoop { _ in expect(Guarantee(on: worker) { 1 }.asPromise(), gives: 1) } }
        worker.stop()
        worker.join()
        while reports.count == 0 { sched_yield() }
        expectEqual(reports.count, 1)
    }

    /// What learns of the end, or cleans up for another thread, may attach a handler to the loop that ends.
    @Test(arguments: ["whenEnded", "ended", "its own ended", "cleanup"])
    func handlersThatTheEndMakesAreReleased(maker: String) throws {
        let tally = Tally()
        @Sendable func attach() {
            let mark = tally.boundForThreads()
            Promise.value(1).done { _ in mark() }.ignoringErrors()
        }
        if maker.hasSuffix(" ended") || maker == "ended" {
            let worker = try EventLoop.spawn()
            let attached = maker == "ended" ? worker.ended.map(on: nil) { attach() } : .value
            if maker == "its own ended" {
                worker.submit {
                    let mark = tally.boundForThreads()
                    worker.ended.done { mark() }
                }
            }
            worker.stop()
            worker.join()
            withExtendedLifetime(attached) {}
        } else {
            EventLoop.withLoop { loop in
                if maker == "whenEnded" { loop.remote.whenEnded { attach() } }
                // Sound, since the thread is joined.
                nonisolated(unsafe) let loop = loop
                let words = LastWords { TestThread { loop.performCleanup { attach() } }.join() }
                if maker == "cleanup" { loop.enqueue { words.use() } }
            }
        }
        expectEqual(tally.peak, 1)
        expectEqual(tally.alive, 0)
    }

    @Test(.inRealTime) func endedIsFulfilledForWhoeverAsksLateToo() throws {
        let loop = EventLoop.current
        let worker = try EventLoop.spawn()
        let ended = worker.ended
        expect(!loop.isAlive && loop.canWakeItself && ended.isPending)
        worker.stop()
        hang(ended)
        let late = worker.ended
        expect(late.isFulfilled)
        worker.join()
        // What woke the hang may still be in the mail.
        while loop.isReady { try loop.turn(.poll) }
        expect(!loop.canWakeItself)
    }

    /// Its thread drives no loop.
    @Test func anAsyncFunctionSeesTheEndOfAGroup() async throws {
        let group = try LoopGroup(loops: 2)
        let ended = group.ended
        group.stop()
        await ended.value
        expect(group.allSatisfy(\.hasEnded))
    }

    @Test func joiningInAForkedChildDoesNotWait() throws {
        let worker = try EventLoop.spawn()
        let child = fork()
        if child == 0 {
            alarm(20)
            worker.join()
            _exit(42)
        }
        var status: CInt = 0
        expectEqual(waitpid(child, &status, 0), child)
        expectEqual(status, 42 << 8)
        worker.stop()
        worker.join()
    }
}

/// A `hang` in a `deinit` that runs as its loop ends.
struct HangAtLoopEndTests {
    /// The ways to hold an object until the loop ends.
    enum Holder: CaseIterable {
        case readyJob, timer, waiter, waiterOfWaiter, combinator, dispatched, asyncBody
    }

    /// Makes `object` live until the end of this thread's loop, or until the promise has settled, if that comes first.
    private static func keep(_ object: LastWords, by holder: Holder, _ promise: Promise<Int>) {
        switch holder {
        case .readyJob: EventLoop.current.enqueue { object.use() }
        case .timer: EventLoop.current.schedule(after: .seconds(1000)) { object.use() }
        case .waiter: promise.done { _ in object.use() }.ignoringErrors()
        case .waiterOfWaiter: promise.map { $0 }.ensure { object.use() }.ignoringErrors()
        case .combinator:
            when(fulfilled: promise, after(.seconds(1000)).asPromise()).done { _ in object.use() }.ignoringErrors()
        case .dispatched: promise.map(on: nil) { $0 }.done { _ in object.use() }.ignoringErrors()
        case .asyncBody: Promise { try await promise.value }.done { _ in object.use() }.ignoringErrors()
        }
    }

    @Test(arguments: Holder.allCases) func anEndedLoopRefusesToWait(holder: Holder) {
        let (promise, resolver) = Promise<Int>.pending()
        var failure: (any Error)?
        var hasRun = false
        var waiters = 0
        EventLoop.withLoop { loop in
            let object = LastWords {
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
            let object = LastWords { value = try? hang(promise) }
            loop.enqueue { object.use() }
            resolver.fulfill(1)
        }
        expectEqual(value, 1)
    }
}
