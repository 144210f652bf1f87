import CLinux
import ReactorLibc

extension EventLoop {
    /// The calling thread's loop, created on first use. It ends with its thread. The main thread's loop lives as long
    /// as the process.
    @available(*, noasync, message: "an async function has no thread of its own; pass the loop's remote in")
    public static var current: EventLoop { ofCurrentThread }

    /// The remote of the main thread's loop, for other threads. It can be used anywhere, even before the main thread
    /// has asked for its loop. Submitted jobs run once the main thread drives that loop.
    public static var main: LoopRemote { ThreadLoop.remoteOfMain }

    /// Runs `body` with a fresh loop as this thread's `current`, and then ends that loop.
    ///
    /// Jobs that are still ready or waiting are released without being run, and reported through the log handler. So
    /// are handlers that wait for results of other threads: their captures are released before this returns.
    ///
    /// Use this to give a test a separate loop and a virtual clock. Without a clock, the loop has the kernel's
    /// monotonic one.
    /// - Throws: the error of `body`, after the loop has ended.
    @discardableResult
    public static func withLoop<Value>(
        clock: VirtualClock? = nil, _ body: (EventLoop) throws -> Value
    ) rethrows -> Value {
        try ThreadLoop.with(EventLoop(clock: clock.map(LoopClock.virtual) ?? .monotonic), body)
    }

    /// As `withLoop(clock:_:)`, with system calls that a test has replaced.
    @discardableResult
    package static func withLoop<Value>(
        clock: VirtualClock? = nil, syscalls: Syscalls, _ body: (EventLoop) throws -> Value
    ) rethrows -> Value {
        try ThreadLoop.with(EventLoop(clock: clock.map(LoopClock.virtual) ?? .monotonic, syscalls: syscalls), body)
    }

    /// `current` without `noasync`, for code that may be inlined into synchronous callees of an async function.
    @inlinable
    package static var ofCurrentThread: EventLoop {
        if let loop = clinux_get_current_loop() {
            return Unmanaged<EventLoop>.fromOpaque(loop).takeUnretainedValue()
        }
        return ThreadLoop.make()
    }

    /// The address by which the layer above identifies a handler's loop.
    @inlinable
    package static var addressOfThisThread: UnsafeMutableRawPointer {
        clinux_get_current_loop() ?? Unmanaged.passUnretained(ThreadLoop.make()).toOpaque()
    }

    /// Adds to `nodesVisited` if the calling thread has a loop.
    package static func nodesWereVisited(_ count: Int) {
        withExisting { $0.meter.nodesVisited &+= count }
    }

    /// Whether this thread's loop is ending, possibly together with the thread.
    package static var isEndingOnThisThread: Bool { withExisting { $0.hasEnded } ?? false }

    /// Calls `body` with the calling thread's loop, if it has one.
    @discardableResult
    static func withExisting<Value>(_ body: (EventLoop) -> Value) -> Value? {
        clinux_get_current_loop().map { Unmanaged<EventLoop>.fromOpaque($0)._withUnsafeGuaranteedRef(body) }
    }
}
