@testable import PromisesTestSupport
@testable import ReactorIOTestSupport

/// `EventLoop.run { … }` with an async function.
@Suite(.serialized, .ownThread) struct RunAsyncTests {
    /// Not for other threads.
    private final class Notes {
        var lines: [String] = []
        let thread = pthread_self()

        func add(_ line: String) {
            expectEqual(thread, pthread_self())
            lines.append(line)
        }
    }

    @Test(.inRealTime) func itTakesAndAnswersWhatIsNotSendableAndTheLoopGoesOnBetween() throws {
        let loop = EventLoop.current
        let notes = Notes()
        loop.enqueue { notes.add("job") }
        let same = try loop.run { () -> Notes in
            notes.add("begin")
            await Task.yield()
            notes.add("end")
            return notes
        }
        expect(same === notes && notes.lines == ["begin", "job", "end"])
        #expect(throws: Flaw(1)) {
            try loop.run {
                await Task.yield()
                throw Flaw(1)
            }
        }
    }

    private static nonisolated func thread() async -> pthread_t {
        await Task.yield()
        return threadOfCaller()
    }

    @Test(.inRealTime) func whatItCallsStaysOnTheThread() throws {
        let loop = EventLoop.current
        let threads = try loop.run {
            async let one = Self.thread()
            async let other = Self.thread()
            let grouped = await withTaskGroup(of: pthread_t.self) { group in
                for _ in 0..<10 { group.addTask { await Self.thread() } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            return await [one, other, Self.thread()] + grouped
        }
        expect(Set(threads) == [pthread_self()] && threads.count == 13)
    }

    @Test(.inRealTime) func stopCancelsIt() throws {
        let loop = EventLoop.current
        #expect(throws: CancellationError.self) {
            try loop.run {
                loop.stop()
                try await firstly { after(.seconds(3600)).asPromise() }.value
            }
        }
        expect(!loop.isAlive, "the timer has gone")
        try loop.run { loop.stop() }
        var hasFired = false
        loop.schedule(after: .milliseconds(1)) { hasFired = true }
        try loop.run()
        expect(hasFired, "no stop is left behind")
    }

    @Test(.inRealTime) func insideAHandlerOfTheSameLoop() throws {
        let loop = EventLoop.current
        let outcome = after(.milliseconds(1)).map { () throws -> Int in
            try loop.run {
                await Task.yield()
                return 6 * 7
            }
        }
        expect(outcome, gives: 42)
    }

    @Test func onAnEndedLoopItDoesNotBegin() {
        let ended = EventLoop.withLoop { $0 }
        #expect(throws: SystemError.self) { try ended.run { Issue.record("it began") } }
    }

    /// The object that Swift retains for a task must be the one that it releases: a preference for the loop's second
    /// executor freed it.
    @Test(.inRealTime) func preferencesReleaseWhatTheyRetain() throws {
        let loop = EventLoop.current
        let remote = loop.remote
        for _ in 0..<100 {
            let threads = try loop.run {
                await withTaskExecutorPreference(remote) { await Self.thread() }
            }
            expectEqual(threads, pthread_self())
        }
        let outside = try hang(
            Promise {
                for _ in 0..<100 { await withTaskExecutorPreference(remote) { _ = await Self.thread() } }
                return await Task(executorPreference: remote) { await Self.thread() }.value
            })
        expectEqual(outside, pthread_self())
    }

    @Test(.inRealTime) func aTaskThatYieldsTakesTurnsWithTimers() throws {
        let loop = EventLoop.current
        var hasFired = false
        loop.schedule(after: .milliseconds(1)) { hasFired = true }
        nonisolated(unsafe) let fired = { hasFired }
        try loop.run { while !fired() { await Task.yield() } }
        expect(hasFired)
    }
}

/// `EventLoop.run { … }` in a method of an actor.
struct BodiesOfActorsTests {
    private actor Counter {
        private var count = 0

        func addInBody() throws -> Int {
            try EventLoop.withLoop { loop in
                try loop.run {
                    self.count += 1
                    return self.count
                }
            }
        }

        func addBesideBody() throws -> Int {
            try EventLoop.withLoop { loop in
                count += 1
                return count + (try loop.run { 1 })
            }
        }
    }

    private actor Local {
        private let home: LoopRemote
        private var count = 0
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: LoopRemote) { self.home = home }

        func addInBody(on loop: EventLoop) throws -> Int {
            try loop.run {
                await Task.yield()
                self.count += 1
                return self.count
            }
        }
    }

    @Test func aBodyOfTheActorThatTheMethodHoldsIsRefused() async throws {
        let counter = Counter()
        let error = await #expect(throws: DispatchError.self) { try await counter.addInBody() }
        expect("\(error!)".contains("method of the actor Counter"))
        expectEqual(try await counter.addBesideBody(), 2, "a body that uses nothing of the actor runs")
    }

    @Test(.inRealTime) func anActorOfTheLoopMayBeUsed() throws {
        let loop = EventLoop.current
        let local = Local(on: loop.remote)
        loop.enqueue {
            let count = try? local.assumeIsolated { try $0.addInBody(on: EventLoop.current) }
            expectEqual(count, 1)
        }
        try loop.run()
    }
}
