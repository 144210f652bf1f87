import Synchronization

/// A value that exists once per loop: a cache, counters, a database client. It is made on the loop's thread at first
/// use, is used on that thread only, and need not be `Sendable`.
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
/// The loop releases the value on its own thread: when it ends, or after the last reference to this object is released,
/// whichever is first. A `deinit` there may therefore pass on whatever must outlive the loop. An async handler that has
/// not finished when its loop ends keeps the value that it has obtained, and releases it where it continues. A loop
/// that is ending still returns the value; one that is made only then is not kept.
public final class LoopLocal<Value>: Sendable {
    package let number = LoopLocalNumbers.next()
    private let make: @Sendable () -> Value
    /// The loops that have a value.
    private let holders = LockedValue<Set<LoopRemote>>([])

    /// - Parameter make: makes the value of a loop, on the loop's thread.
    public init(_ make: @escaping @Sendable () -> Value) { self.make = make }

    deinit {
        // A loop that has ended has released its value.
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
    /// The value belongs to the loop's thread, so `body` can neither return it nor put anything into it that another
    /// thread may use: its captures and its result are `Sendable`, or newly made. In a handler of `serve` use
    /// `value(for: connection)` instead.
    /// - Parameter body: is called at once, on this thread.
    @available(*, noasync, message: "an async function has no loop of its own; use value(for: connection) or collect")
    public func withValue<Result, Failure: Error>(
        _ body: @Sendable (Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try body(value(on: EventLoop.ofCurrentThread))
    }

    /// The value of `loop`, which is this thread's.
    package func value(on loop: EventLoop) -> Value {
        if let known = loop.local(number) { return value(in: known) }
        return makeValue(on: loop)
    }

    /// The value in the loop's box for this object's number; the loop retains the box meanwhile.
    // No other object has the number, so the box has this type. Inlinable, since a server may ask for the value with
    // each message.
    @inlinable @inline(__always)
    package func value(in box: Unmanaged<LoopLocalValue>) -> Value {
        box._withUnsafeGuaranteedRef { unsafeDowncast($0, to: Box.self).value }
    }

    /// Makes the value on a loop that has none yet.
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
    /// The value of the `LoopLocal` with that number, which this loop retains.
    package func local(_ number: Int) -> Unmanaged<LoopLocalValue>? { ending.local(number) }
}

private enum LoopLocalNumbers {
    private static let last = Atomic(0)

    /// Numbers are never reused, so a value is never mistaken for another one.
    static func next() -> Int { last.add(1, ordering: .relaxed).newValue }
}
