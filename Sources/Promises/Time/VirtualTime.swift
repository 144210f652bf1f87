import Reactor

/// Runs `body` with a loop of its own as this thread's, whose time is virtual: when nothing is ready, the clock
/// jumps to the next timer, so that hours pass in the time that their handlers take.
///
/// ```swift
/// withVirtualTime {
///     hang(after(seconds: 3600))
/// }
/// ```
///
/// `EventLoop.current.now` is the virtual time, which starts at zero. What is still pending when `body` returns or throws is let
/// go, unrun, and reported as `LogEvent.undeliveredHandlers`. The same as `EventLoop.withLoop(clock:)`, for tests.
@available(*, noasync, message: "an async function has no loop of its own")
@discardableResult
public func withVirtualTime<Value>(_ body: () throws -> Value) rethrows -> Value {
    try EventLoop.withLoop(clock: VirtualClock()) { _ in try body() }
}

/// The same with the clock, which may also be moved by hand.
@available(*, noasync, message: "an async function has no loop of its own")
@discardableResult
public func withVirtualTime<Value>(_ body: (VirtualClock) throws -> Value) rethrows -> Value {
    let clock = VirtualClock()
    return try EventLoop.withLoop(clock: clock) { _ in try body(clock) }
}
