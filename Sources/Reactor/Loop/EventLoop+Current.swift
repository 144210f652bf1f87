import CLinux
import Glibc
import Synchronization

extension EventLoop {
    /// The calling thread's loop, made when it is first asked for. It ends with its thread; the main thread's lives
    /// as long as the process.
    @available(*, noasync, message: "an async function has no thread of its own; hand the loop's remote in")
    public static var current: EventLoop { ofCurrentThread }

    /// The main thread's loop as the other threads may use it. Usable anywhere, also before the main thread has asked
    /// for its loop; what is submitted runs once the main thread drives it.
    public static var main: Remote { mainLoop.loop.remote }

    /// Runs `body` with a fresh loop as this thread's `current`, and ends that loop afterwards: what is still ready or
    /// waits on it is let go, unrun, and reported through the log handler. What handlers captured that wait for promises of
    /// other threads is released on this thread: when the loop around is next driven, or ends.
    ///
    /// This is how a test gets a loop to itself, and a virtual clock.
    @discardableResult
    public static func withLoop<Value>(
        clock: VirtualClock? = nil, _ body: (EventLoop) throws -> Value
    ) rethrows -> Value {
        try with(EventLoop(clock: clock.map(LoopClock.virtual) ?? .monotonic), body)
    }

    /// The same with system calls that a test has replaced.
    @discardableResult
    package static func withLoop<Value>(
        clock: VirtualClock? = nil, syscalls: Syscalls, _ body: (EventLoop) throws -> Value
    ) rethrows -> Value {
        try with(EventLoop(clock: clock.map(LoopClock.virtual) ?? .monotonic, syscalls: syscalls), body)
    }

    private static func with<Value>(_ loop: EventLoop, _ body: (EventLoop) throws -> Value) rethrows -> Value {
        ForkDetector.watch()
        var outer = clinux_get_current_loop()
        clinux_set_current_loop(Unmanaged.passUnretained(loop).toOpaque())
        loop.owner = pthread_self()
        noteHandlersIfNeeded()
        defer {
            outer = loop.nameHeir(outer)
            loop.close()
            clinux_set_current_loop(outer)
            noteHandlersIfNeeded()
        }
        return try body(loop)
    }

    /// `current` for code that may be inlined into an async function's synchronous callees.
    @inlinable
    package static var ofCurrentThread: EventLoop {
        if let loop = clinux_get_current_loop() {
            return Unmanaged<EventLoop>.fromOpaque(loop).takeUnretainedValue()
        }
        return makeLoopOfThisThread()
    }

    /// The same without a reference of its own, for the few lines that a promise's hop goes through. The loop outlives
    /// its thread's handlers.
    @inlinable @inline(__always)
    package static var unmanagedOfThisThread: Unmanaged<EventLoop> { .fromOpaque(addressOfThisThread) }

    /// The address by which the layer above knows the loop that a handler belongs to.
    @inlinable
    package static var addressOfThisThread: UnsafeMutableRawPointer {
        clinux_get_current_loop() ?? Unmanaged.passUnretained(makeLoopOfThisThread()).toOpaque()
    }

    /// Adds to `nodesVisited`, on a thread that has a loop.
    package static func nodesWereVisited(_ count: Int) {
        guard let loop = clinux_get_current_loop() else { return }
        Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.nodesVisited &+= count }
    }

    /// Whether this thread's loop is ending, perhaps with the thread.
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
        loop.expectToBeDriven(isMain: isMainThread)
        watchEndOfProcess()
        return loop
    }

    /// Makes this loop the calling thread's, which has none yet.
    func installOnThisThread(endsWithIt: Bool = true) {
        ForkDetector.watch()
        owner = pthread_self()
        clinux_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
        // The thread's end closes the loop and drops this reference.
        if endsWithIt { pthread_setspecific(Self.endOfThread, Unmanaged.passRetained(self).toOpaque()) }
    }

    static func owns(_ loop: EventLoop) -> Bool { pthread_equal(loop.owner, pthread_self()) != 0 }

    private static let endOfThread: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { address in
            if let address { EventLoop.end(address) }
        }
        return key
    }()

    private static func end(_ address: UnsafeMutableRawPointer) {
        // Handlers that are let go now may ask for the current loop once more.
        clinux_set_current_loop(address)
        Unmanaged<EventLoop>.fromOpaque(address).takeRetainedValue().close()
        clinux_set_current_loop(nil)
        noteHandlersIfNeeded()
    }

    /// On a thread that does one job after the other and drives no loop: ends this thread's, if the job has left something
    /// on it that is not ready. The next job gets another.
    static func endJobOfThisThread() {
        guard let address = clinux_get_current_loop() else { return }
        let loop = Unmanaged<EventLoop>.fromOpaque(address).takeUnretainedValue()
        loop.endJob()
        if loop.hasWaiters {
            pthread_setspecific(endOfThread, nil)
            end(address)
        }
        loop.undrivenDetector?.forgetPlaces()
        loop.notifyRequestingLoop()
    }

    // The invariant of the box: until the main thread has asked for its loop nobody but `remote`, which touches only
    // the mailbox, has seen it; from then on it is the main thread's.
    private struct MainLoop: @unchecked Sendable {
        let loop = EventLoop()
    }
    private static let mainLoop = MainLoop()

    /// The main thread's loop, for that thread.
    static var mainLoopOfProcess: EventLoop { mainLoop.loop }
}
