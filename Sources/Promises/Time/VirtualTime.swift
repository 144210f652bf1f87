import Reactor

/// Runs `body` with a new loop for this thread whose time is virtual.
///
/// When nothing is ready, the clock jumps to the next timer.
///
/// ```swift
/// withVirtualTime {
///     hang(after(.seconds(3600)))
/// }
/// ```
///
/// `EventLoop.current.now` is the virtual time, which starts at zero. Handlers still pending when `body` returns or
/// throws are released without being called, and reported as `LogEvent.undeliveredHandlers`. This is
/// `EventLoop.withLoop(clock:)` for tests.
@available(*, noasync, message: "call it in a synchronous function on the loop's thread")
@discardableResult
public func withVirtualTime<Value>(_ body: () throws -> Value) rethrows -> Value {
    try EventLoop.withLoop(clock: VirtualClock()) { _ in try body() }
}

/// Like the other overload, but passes the clock to `body`, which may advance it.
///
/// ```swift
/// withVirtualTime { clock in
///     let late = after(.seconds(5))
///     clock.advance(by: .seconds(5))
///     hang(late)                                 // waits for nothing
/// }
/// ```
@available(*, noasync, message: "call it in a synchronous function on the loop's thread")
@discardableResult
public func withVirtualTime<Value>(_ body: (VirtualClock) throws -> Value) rethrows -> Value {
    let clock = VirtualClock()
    return try EventLoop.withLoop(clock: clock) { _ in try body(clock) }
}
