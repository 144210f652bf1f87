import Synchronization

/// A value per loop, such as a cache, counters or a database client. The value is made on first use and used only on
/// the loop's thread, so it need not be `Sendable`.
///
/// ```swift
/// final class Counters { var requests = 0 }
///
/// let counters = LoopLocal { Counters() }
/// let served = listener.serve(on: group) { connection in
///     let counters = counters.value(for: connection)
///     return connection.forEachLine { line in
///         counters.requests += 1
///         return connection.write(line + "\n")
///     }
/// }
/// let requests = group.collect(counters) { $0.requests }
/// ```
///
/// The loop releases the value on its own thread, when the loop ends or when the last reference to this object is
/// released. The value's `deinit` can pass on data that must outlive the loop. An async handler that outlives its loop
/// keeps its value, and releases it where the handler continues. An ending loop returns the value, but does not keep a
/// new one.
public final class LoopLocal<Value>: Sendable {
    package let number = LoopLocalNumbers.next()
    private let make: @Sendable () -> Value
    private let holders = LockedValue<Set<LoopRemote>>([])

    /// - Parameter make: makes a loop's value, on the loop's thread.
    public init(_ make: @escaping @Sendable () -> Value) { self.make = make }

    deinit {
        // An ended loop has released its value.
        for remote in holders.withLock({ $0 }) {
            let loop = remote.loop
            loop.performCleanup { [number] in if !loop.hasEnded { _ = loop.ending.takeLocal(number) } }
        }
    }

    /// Calls `body` with the value of this thread's loop.
    ///
    /// ```swift
    /// remote.submit { counters.withValue { $0.requests += 1 } }
    /// ```
    ///
    /// The value belongs to the loop's thread, so `body` cannot return it or store in it anything that another thread
    /// may use. Captures and results must be `Sendable`, or newly made. In a handler for `serve`, use `value(for:
    /// connection)` instead.
    /// - Parameter body: called at once, on this thread.
    @available(*, noasync, message: "an async function has no loop of its own; use value(for: connection) or collect")
    public func withValue<Result, Failure: Error>(
        _ body: @Sendable (Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try body(value(on: EventLoop.ofCurrentThread))
    }

    /// `loop` must be this thread's.
    package func value(on loop: EventLoop) -> Value {
        if let known = loop.local(number) { return value(in: known) }
        return makeValue(on: loop)
    }

    /// Returns the value in the box for this object's number. The loop retains the box during the call.
    // Only this object has the number, so the box has this type. Inlinable, since servers may call this once per
    // message.
    @inlinable @inline(__always)
    package func value(in box: Unmanaged<LoopLocalValue>) -> Value {
        box._withUnsafeGuaranteedRef { unsafeDowncast($0, to: Box.self).value }
    }

    package func makeValue(on loop: EventLoop) -> Value {
        let made = Box(make(), holders, loop.remote)
        // `make` may have asked for the value itself.
        if let known = loop.local(number) { return value(in: known) }
        guard !loop.shared.life.hasReached(.releasingLocals) else { return made.value }
        made.isKept = true
        holders.withLock { _ = $0.insert(made.remote) }
        loop.ending.keep(made, number)
        return made.value
    }

    @usableFromInline
    final class Box: LoopLocalValue {
        @usableFromInline let value: Value
        let remote: LoopRemote
        private let holders: LockedValue<Set<LoopRemote>>
        var isKept = false

        init(_ value: Value, _ holders: LockedValue<Set<LoopRemote>>, _ remote: LoopRemote) {
            self.value = value
            self.holders = holders
            self.remote = remote
        }

        deinit {
            if isKept { holders.withLock { _ = $0.remove(remote) } }
        }
    }
}

extension EventLoop {
    /// Returns the value, which this loop retains.
    package func local(_ number: Int) -> Unmanaged<LoopLocalValue>? { ending.local(number) }
}

private enum LoopLocalNumbers {
    private static let last = Atomic(0)

    /// Never reused, so values cannot be confused.
    static func next() -> Int { last.add(1, ordering: .relaxed).newValue }
}
