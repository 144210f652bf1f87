@testable import PromisesTestSupport

/// Whatever outlives a loop, and is then used. The address sanitizer sees a use of the loop's memory; other builds, most
/// writes.
@Suite(.ownThread) struct EndedLoopTests {
    /// The ends of a loop, and where what it has left is used: on the thread that had it, or on another one.
    enum End: CaseIterable {
        case scope, innerScope, scopeUsedElsewhere, thread, stop

        /// Calls `make` on a loop, and `use` with its result when the loop has ended.
        func run<Left>(
            _ make: @escaping @Sendable (EventLoop) throws -> Left, _ use: @escaping @Sendable (Left) throws -> Void
        ) throws {
            let slot = Slot<Left>()
            switch self {
            case .scope, .scopeUsedElsewhere: try EventLoop.withLoop { slot.left = try make($0) }
            case .innerScope: try EventLoop.withLoop { _ in try EventLoop.withLoop { slot.left = try make($0) } }
            case .thread: TestThread.run { slot.left = try? make(EventLoop.ofCurrentThread) }
            case .stop:
                let worker = try EventLoop.spawn()
                worker.submit { slot.left = try? make(EventLoop.ofCurrentThread) }
                worker.stop()
                worker.join()
            }
            // They take the memory of the loop, if that is free.
            let marks = [UInt64](repeating: 0x4141_4141_4141_4140, count: 400)
            let arrays = (8..<400).flatMap { size in (0..<4).map { _ in Array(marks.prefix(size)) } }
            let useIt = { @Sendable () throws -> Void in
                guard let left = slot.left.take() else { preconditionFailure("nothing was left") }
                try EventLoop.withLoop { _ in try use(left) }
            }
            if self == .scopeUsedElsewhere { try TestThread.run { Result { try useIt() } }.get() } else { try useIt() }
            expect(arrays.allSatisfy { memcmp($0, marks, $0.count * 8) == 0 }, "freed memory was written")
        }
    }

    // @unchecked Sendable: the threads that use it are joined before the next one does.
    private final class Slot<Left>: @unchecked Sendable { var left: Left? }

    /// A promise that waits for one that waits for it, so that nothing of its loop leads to it.
    private static func circle(_ loop: EventLoop) throws -> Promise<Int> {
        final class Box { var promise: Promise<Int>! }
        let box = Box()
        box.promise = Promise.value(1).then { _ in box.promise.map { $0 } }
        for _ in 0..<3 { try loop.turn(.poll) }
        return box.promise
    }

    /// What other code does with a promise.
    enum Use: CaseIterable {
        case cancel, attach, attachAndCancel, sweep, hang, combine, raceAndLose, awaitAndCancel, ask, release

        func callAsFunction(_ promise: Promise<Int>) throws {
            switch self {
            case .cancel: promise.cancel()
            case .attach: promise.map { $0 }.ignoringErrors()
            case .attachAndCancel: promise.ensure {}.map { $0 }.cancel()
            case .sweep: for _ in 0..<40 { promise.map { $0 }.cancel() }
            case .hang: for _ in 0..<20 { _ = try? PromisesTestSupport.hang(promise, timeout: .zero) }
            case .combine: when(fulfilled: [promise, promise.map { $0 }]).cancel()
            case .raceAndLose: expect(race(promise, .value(1)), gives: 1)
            case .awaitAndCancel:
                // A test may occupy each thread of Swift's pool.
                let loop = try EventLoop.spawn()
                defer {
                    loop.stop()
                    loop.join()
                }
                let before = waiterCount(of: promise)
                let task = Task(executorPreference: loop) { _ = try? await promise.value }
                spin { waiterCount(of: promise) > before }
                task.cancel()
                try PromisesTestSupport.hang(Promise { await task.value }, timeout: patience)
            case .ask: expect(promise.isPending && promise.error == nil)
            case .release: break
            }
        }
    }

    @Test(arguments: End.allCases, Use.allCases)
    func aPromiseThatItsLoopHasNotFound(end: End, use: Use) throws {
        try end.run(Self.circle) { try use($0) }
    }

    /// A promise that any thread settles stays pending when its loop ends, and has withdrawn waiters of that loop.
    @Test(arguments: End.allCases, Use.allCases) func aPromiseWithAResolver(end: End, use: Use) throws {
        try end.run {
            let pair = Promise<Int>.pending()
            for _ in 0..<10 { pair.promise.map { $0 }.ignoringErrors() }
            for _ in 0..<10 { pair.promise.map { $0 }.cancel() }
            _ = try? hang(pair.promise, timeout: .zero)
            try $0.turn(.poll)
            return pair
        } _: { promise, resolver in
            try use(promise)
            if end != .thread { resolver.fulfill(1) }
        }
    }

    @Test(arguments: End.allCases) func handles(end: End) throws {
        try end.run { loop in
            (
                loop.schedule(after: .seconds(1)) {}, loop.beforeWaiting {}, loop.hold(),
                try loop.onSignal(SIGURG) {}, loop.remote, LoopLocal { 7 }
            )
        } _: { timer, hook, hold, signal, remote, local in
            expect(!timer.cancel() && !timer.isActive && !hook.cancel() && !signal.cancel() && !signal.isActive)
            expect(!hold.isActive)
            hold.cancel()
            expect(!remote.submit {} && !remote.stop() && remote.hasEnded)
            remote.join()
            remote.beginExternalWork()
            remote.endExternalWork()
            let ended = Shared(false)
            remote.whenEnded { ended.value = true }
            expect(ended.value)
            expectEqual(local.value(on: .ofCurrentThread), 7)
        }
    }

    /// A task of a loop of `withLoop` continues on the loops around it, of which the next one has ended, too.
    @Test func aTaskWhoseLoopsHaveEnded() throws {
        let executor = EventLoop.withLoop { _ in EventLoop.withLoop { ThreadBoundExecutor($0) } }
        let task = Task(executorPreference: executor) { threadOfCaller() }
        let thread = try hang(Promise { await task.value }, timeout: patience)
        expect(pthread_equal(thread, pthread_self()) != 0)
    }
}
