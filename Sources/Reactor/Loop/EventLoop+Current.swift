import CLinux
import Glibc
import Synchronization

extension EventLoop {
    /// The calling thread's loop, created on first use. It ends with its thread. The main thread's loop lives as long
    /// as the process.
    @available(*, noasync, message: "an async function has no thread of its own; pass the loop's remote in")
    public static var current: EventLoop { ofCurrentThread }

    /// The remote of the main thread's loop, for other threads. It can be used anywhere, even before the main thread
    /// has asked for its loop. Submitted jobs run once the main thread drives that loop.
    public static var main: Remote { mainLoop.loop.remote }

    /// Runs `body` with a fresh loop as this thread's `current`, and then ends that loop.
    ///
    /// Jobs that are still ready or waiting are released without being run, and reported through the log handler.
    /// So are handlers that wait for results of other threads: what they captured is released before this returns.
    ///
    /// Use this to give a test its own loop, and a virtual clock.
    /// - Parameters:
    ///   - clock: the clock of the loop's timers; `nil` for the kernel's monotonic clock.
    ///   - body: is called on this thread with the loop.
    /// - Returns: the result of `body`.
    /// - Throws: the error of `body`, after the loop has ended.
    @discardableResult
    public static func withLoop<Value>(
        clock: VirtualClock? = nil, _ body: (EventLoop) throws -> Value
    ) rethrows -> Value {
        try with(EventLoop(clock: clock.map(LoopClock.virtual) ?? .monotonic), body)
    }

    /// As `withLoop(clock:_:)`, with system calls that a test has replaced.
    @discardableResult
    package static func withLoop<Value>(
        clock: VirtualClock? = nil, syscalls: Syscalls, _ body: (EventLoop) throws -> Value
    ) rethrows -> Value {
        try with(EventLoop(clock: clock.map(LoopClock.virtual) ?? .monotonic, syscalls: syscalls), body)
    }

    private static func with<Value>(_ loop: EventLoop, _ body: (EventLoop) throws -> Value) rethrows -> Value {
        ForkDetector.watch()
        loop.scope = .function(within: clinux_get_current_loop())
        clinux_set_current_loop(Unmanaged.passUnretained(loop).toOpaque())
        loop.shared.life.setOwner()
        noteHandlersIfNeeded()
        defer {
            loop.close()
            clinux_set_current_loop(loop.surroundingLoop)
            noteHandlersIfNeeded()
        }
        return try body(loop)
    }

    /// `current` without `noasync`, for code that may be inlined into synchronous callees of an async function.
    @inlinable
    package static var ofCurrentThread: EventLoop {
        if let loop = clinux_get_current_loop() {
            return Unmanaged<EventLoop>.fromOpaque(loop).takeUnretainedValue()
        }
        return makeLoopOfThisThread()
    }

    /// `ofCurrentThread` without a reference of its own, for the few lines that a handler's hop goes through. The loop
    /// outlives the handlers of its thread.
    @inlinable @inline(__always)
    package static var unmanagedOfThisThread: Unmanaged<EventLoop> { .fromOpaque(addressOfThisThread) }

    /// The address by which the layer above identifies the loop that a handler belongs to.
    @inlinable
    package static var addressOfThisThread: UnsafeMutableRawPointer {
        clinux_get_current_loop() ?? Unmanaged.passUnretained(makeLoopOfThisThread()).toOpaque()
    }

    /// Adds to `nodesVisited` if the calling thread has a loop.
    package static func nodesWereVisited(_ count: Int) {
        guard let loop = clinux_get_current_loop() else { return }
        Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.meter.nodesVisited &+= count }
    }

    /// Whether this thread's loop is ending, possibly together with the thread.
    package static var isEndingOnThisThread: Bool {
        clinux_get_current_loop().map {
            Unmanaged<EventLoop>.fromOpaque($0)._withUnsafeGuaranteedRef { $0.hasEnded }
        } ?? false
    }

    @usableFromInline
    package static func makeLoopOfThisThread() -> EventLoop {
        let isMainThread = clinux_gettid() == getpid()
        let loop = isMainThread ? mainLoop.loop : EventLoop()
        loop.installOnThisThread(endsWithIt: !isMainThread)
        // Once the main thread has driven its loop, it is assumed to continue.
        loop.unrunWork = UnrunWork(isMain: isMainThread)
        noteHandlersIfNeeded()
        watchEndOfProcess()
        return loop
    }

    /// Makes this loop the current loop of the calling thread, which must have none yet.
    func installOnThisThread(endsWithIt: Bool = true) {
        ForkDetector.watch()
        shared.life.setOwner()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        // The end of the thread closes the loop and releases this reference.
        if endsWithIt { pthread_setspecific(Self.endOfThread, Unmanaged.passRetained(self).toOpaque()) }
    }

    static func owns(_ loop: EventLoop) -> Bool { loop.shared.life.isOwnedByThisThread }

    private static let endOfThread: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { address in
            if let address { EventLoop.end(address) }
        }
        return key
    }()

    private static func end(_ address: UnsafeMutableRawPointer) {
        // Handlers that are released now may ask for the current loop once more.
        clinux_set_current_loop(address)
        Unmanaged<EventLoop>.fromOpaque(address).takeRetainedValue().close()
        clinux_set_current_loop(nil)
        noteHandlersIfNeeded()
    }

    /// For a thread that runs one job after another and drives no loop: ends the thread's loop if the job has left
    /// something on it that is not ready. The next job gets a new loop.
    static func endJobOfThisThread() {
        guard let address = clinux_get_current_loop() else { return }
        let loop = Unmanaged<EventLoop>.fromOpaque(address).takeUnretainedValue()
        loop.endJob()
        if loop.hasWaiters {
            pthread_setspecific(endOfThread, nil)
            end(address)
        }
        loop.unrunWork?.forgetAll()
        loop.notifyRequestingLoop()
    }

    // The invariant of the box: until the main thread has asked for its loop, only `remote` has seen it, and `remote`
    // touches nothing but the mailbox. From then on the loop belongs to the main thread.
    private struct MainLoop: @unchecked Sendable {
        let loop = EventLoop()
    }
    private static let mainLoop = MainLoop()

    /// The main thread's loop, to be used on the main thread only.
    static var mainLoopOfProcess: EventLoop { mainLoop.loop }
}
