import CLinux
import ReactorLibc

extension EventLoop {
    /// The calling thread's loop, created on first use. It ends with its thread; on the main thread, with the process.
    @available(*, noasync, message: "an async function has no thread of its own; pass the loop's remote in")
    public static var current: EventLoop { ofCurrentThread }

    /// The remote of the main thread's loop. Any thread may read it, even before the main thread has used its loop.
    /// Submitted jobs run once the main thread drives that loop.
    public static var main: LoopRemote { ThreadLoop.remoteOfMain }

    /// Runs `body` with a new loop as this thread's `current`, then ends that loop.
    ///
    /// Before this returns, jobs that are still ready or waiting, and handlers that wait for other threads, are
    /// released without being run, and reported through the log handler.
    ///
    /// Gives a test a separate loop and a virtual clock. Without `clock`, the loop uses the kernel's monotonic clock.
    /// - Throws: the error from `body`, after the loop has ended.
    @discardableResult
    public static func withLoop<Value>(
        clock: VirtualClock? = nil, _ body: (EventLoop) throws -> Value
    ) rethrows -> Value {
        try ThreadLoop.with(EventLoop(clock: clock.map(LoopClock.virtual) ?? .monotonic), body)
    }

    @discardableResult
    package static func withLoop<Value>(
        clock: VirtualClock? = nil, syscalls: Syscalls, _ body: (EventLoop) throws -> Value
    ) rethrows -> Value {
        try ThreadLoop.with(EventLoop(clock: clock.map(LoopClock.virtual) ?? .monotonic, syscalls: syscalls), body)
    }

    /// `current` without `noasync`, for code that is inlined into synchronous functions called by async ones.
    @inlinable
    package static var ofCurrentThread: EventLoop {
        if let loop = clinux_get_current_loop() {
            return Unmanaged<EventLoop>.fromOpaque(loop).takeUnretainedValue()
        }
        return ThreadLoop.make()
    }

    /// Identifies a handler's loop to the layer above.
    @inlinable
    package static var addressOfThisThread: UnsafeMutableRawPointer {
        clinux_get_current_loop() ?? Unmanaged.passUnretained(ThreadLoop.make()).toOpaque()
    }

    package static func nodesWereVisited(_ count: Int) {
        withExisting { $0.meter.nodesVisited &+= count }
    }

    /// True when this thread's loop is ending, possibly together with the thread.
    package static var isEndingOnThisThread: Bool { withExisting { $0.hasEnded } ?? false }

    @discardableResult
    static func withExisting<Value>(_ body: (EventLoop) -> Value) -> Value? {
        clinux_get_current_loop().map { Unmanaged<EventLoop>.fromOpaque($0)._withUnsafeGuaranteedRef(body) }
    }
}
