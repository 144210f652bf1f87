import CLinux
import ReactorLibc
import Synchronization

/// Each thread's loop, made on first use. It ends with its thread or with `withLoop`.
///
/// Invariant: the thread's current loop is the innermost one that is driven or lives there. It is retained until the
/// thread or the `withLoop` call ends; the main thread's loop, until the process ends.
@usableFromInline
enum ThreadLoop {

    @usableFromInline
    static func make() -> EventLoop {
        let isMainThread = clinux_gettid() == getpid()
        let loop = isMainThread ? mainLoop.loop : EventLoop()
        install(loop, endsWithThread: !isMainThread)
        // A main thread that has driven its loop is assumed to continue.
        let pool = PoolThread.current
        loop.undrivenWork = UndrivenWork(isMain: isMainThread, isOfPool: pool != nil)
        pool?.afterJob = endJob
        noteHandlersIfNeeded()
        _ = endOfProcess
        return loop
    }

    /// The thread must have no current loop yet.
    static func install(_ loop: EventLoop, endsWithThread: Bool = true) {
        ForkDetector.watch()
        LoopRegistry.add(loop)
        let address = Unmanaged.passUnretained(loop).toOpaque()
        clinux_set_current_loop(address)
        // The loop is closed and this reference is released when the thread ends.
        if endsWithThread { pthread_setspecific(endOfThread, Unmanaged.passRetained(loop).toOpaque()) }
    }

    static func with<Value>(_ loop: EventLoop, _ body: (EventLoop) throws -> Value) rethrows -> Value {
        ForkDetector.watch()
        loop.scope = .function(within: EventLoop.withExisting { $0 })
        clinux_set_current_loop(Unmanaged.passUnretained(loop).toOpaque())
        LoopRegistry.add(loop)
        noteHandlersIfNeeded()
        defer {
            loop.close()
            clinux_set_current_loop(loop.scope.surroundingLoop.map { Unmanaged.passUnretained($0).toOpaque() })
            loop.leaveForGood()
            noteHandlersIfNeeded()
        }
        return try body(loop)
    }

    /// Returns `loop` and its surrounding loops on this thread, innermost first. Makes a missing outer loop, since the
    /// thread continues.
    static func loops(from loop: EventLoop) -> [LoopRemote] {
        guard case .function(let outer) = loop.scope else { return [loop.remote] }
        return [loop.remote] + loops(from: outer ?? makeAround(loop))
    }

    private static func makeAround(_ loop: EventLoop) -> EventLoop {
        let current = clinux_get_current_loop()
        let made = make()
        clinux_set_current_loop(current)
        noteHandlersIfNeeded()
        loop.scope = .function(within: made)
        return made
    }

    // MARK: The end of a thread

    private static let endOfThread: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { address in
            if let address { ThreadLoop.end(address) }
        }
        return key
    }()

    private static func end(_ address: UnsafeMutableRawPointer) {
        // Handlers that are released now may ask for the current loop.
        clinux_set_current_loop(address)
        let loop = Unmanaged<EventLoop>.fromOpaque(address).takeRetainedValue()
        loop.close()
        clinux_set_current_loop(nil)
        loop.leaveForGood()
        noteHandlersIfNeeded()
    }

    /// Ends the thread's loop if a job left anything on it that is not ready. Called after each job on a pool's thread,
    /// which drives no loop.
    private static func endJob() {
        guard let address = clinux_get_current_loop() else { return }
        let loop = Unmanaged<EventLoop>.fromOpaque(address).takeUnretainedValue()
        while !loop.hasNoReadyJobs { loop.runBatchOfJobs() }
        if loop.hasWaiters {
            pthread_setspecific(endOfThread, nil)
            end(address)
        }
        loop.stopRequested = false
        loop.undrivenWork?.forgetAll()
        loop.requestingLoop.take()?.endExternalWork()
    }

    // MARK: The main thread

    // Invariant: until the main thread asks for its loop, only `remote` has seen it, and touches only its mailbox.
    // After that, the loop belongs to the main thread.
    private struct MainLoop: @unchecked Sendable {
        let loop = EventLoop()
    }
    private static let mainLoop = MainLoop()

    static var remoteOfMain: LoopRemote { mainLoop.loop.remote }

    static func isMain(_ loop: EventLoop) -> Bool { loop === mainLoop.loop }

    static let hasReportedLeftHandlers = Atomic(false)

    // MARK: Threads that may never drive their loop

    /// Makes this thread's operators note their work while nothing drives its current loop, and perhaps nothing ever
    /// will; see `UndrivenWork`.
    @inline(never)
    static func noteHandlersIfNeeded() {
        clinux_set_noting_handlers(EventLoop.withExisting { $0.undrivenWork != nil && !$0.isBeingDriven } ?? false)
    }

    /// Makes the process's end report the work on all undriven loops.
    private static let endOfProcess: Void = {
        generationOfProcess.store(ForkDetector.generation, ordering: .relaxed)
        atexit { ThreadLoop.reportUndrivenWork() }
    }()

    private static let generationOfProcess = Atomic<CInt>(0)

    /// Called on the thread that ends the process.
    private static func reportUndrivenWork() {
        // A forked child reports nothing: a thread of the parent, missing here, may have held a lock.
        guard ForkDetector.generation == generationOfProcess.load(ordering: .relaxed) else { return }
        // With an async `main`, other code runs on the main thread, and another thread may call exit.
        guard UndrivenWork.reportAll(), clinux_gettid() == getpid() else { return }
        let left = mainLoop.loop.undeliveredCount
        if left > 0 { LoopEvent.send(.undelivered(left)) }
    }
}
