import Reactor

/// A promise that cannot be rejected: its handlers cannot throw, and it has no `catch`.
///
/// ```swift
/// after(.seconds(1))                   // Guarantee<Void>
///     .map { "one second later" }      // Guarantee<String>
///     .done { print($0) }              // no error can reach the end of this chain
/// ```
///
/// `after` returns a guarantee, and so does `Connection.read`, whose failures are part of its value. With a throwing
/// closure an operator returns a `Promise`. Handlers run on the same threads, and in the same order, as a promise's.
public struct Guarantee<T> {
    @usableFromInline package let core: PromiseCore

    @inlinable
    package init(_ core: PromiseCore) { self.core = core }

    /// Makes a guarantee that `body` fulfills, now or later.
    ///
    /// Only `cancel()` cancels it; a race, or another promise that no longer needs it, does not, because the closure
    /// could not be notified.
    /// - Parameter body: runs at once, with the closure that fulfills the guarantee.
    @inlinable
    public init(_ file: StaticString = #fileID, _ line: UInt = #line, resolver body: (@escaping (T) -> Void) -> Void) {
        core = ResolverCore(of: T.self, isOfGuarantee: true, file, line).traced(Self.self, file, line)
        let resolver = Resolver<T>(core)
        body { resolver.fulfill($0) }
    }

    /// Makes a pending guarantee and the closure that fulfills it.
    ///
    /// ```swift
    /// let (stop, seal) = Guarantee<Void>.pending()
    /// race(after(.seconds(1)), stop)          // may be written again, round by round: the race does not cancel `stop`
    /// ```
    ///
    /// Only `cancel()` cancels it: see the initializer.
    @inlinable
    public static func pending(
        _ file: StaticString = #fileID, _ line: UInt = #line
    ) -> (guarantee: Guarantee<T>, resolve: (T) -> Void) {
        let core = ResolverCore(of: T.self, isOfGuarantee: true, file, line).traced(Self.self, file, line)
        let resolver = Resolver<T>(core)
        return (Guarantee(core), { resolver.fulfill($0) })
    }

    /// Makes a fulfilled guarantee.
    @inlinable
    public static func value(_ value: T) -> Guarantee<T> { Guarantee(PromiseCore.fulfilled(value)) }
}

extension Guarantee where T: Sendable {
    /// Makes a guarantee that `body` fulfills, on any thread.
    @inlinable
    public init(
        _ file: StaticString = #fileID, _ line: UInt = #line, resolver body: (@escaping @Sendable (T) -> Void) -> Void
    ) {
        core = ResolverCore(of: T.self, isOfGuarantee: true, file, line).traced(Self.self, file, line)
        let resolver = Resolver<T>(core)
        body { resolver.fulfill($0) }
    }

    /// Makes a pending guarantee and the closure that fulfills it, on any thread.
    @inlinable
    public static func pending(
        _ file: StaticString = #fileID, _ line: UInt = #line
    ) -> (guarantee: Guarantee<T>, resolve: @Sendable (T) -> Void) {
        let core = ResolverCore(of: T.self, isOfGuarantee: true, file, line).traced(Self.self, file, line)
        let resolver = Resolver<T>(core)
        return (Guarantee(core), { resolver.fulfill($0) })
    }
}

extension Guarantee where T == Void {
    /// Makes a fulfilled guarantee.
    @inlinable
    public init() { self = .value }

    /// A fulfilled guarantee: always the same one, so nothing is allocated.
    @inlinable
    public static var value: Guarantee<Void> { Guarantee(PromiseCore.void) }
}

// Sound as for Promise.
extension Guarantee: Sendable where T: Sendable {}

extension Guarantee: Thenable {
    /// Calls `handler` once the guarantee is fulfilled, on the fulfilling thread, inside the fulfilling call.
    /// - Parameter handler: called exactly once. Receives `PromiseError.abandoned` if the closure that would have
    ///   fulfilled the guarantee was released.
    @inlinable
    public func pipe(to handler: @escaping @Sendable (Result<T, any Error>) -> Void) {
        core.attach(PromiseCore(inline: Notification { handler($0.of(T.self).result) }))
    }

    /// `.success` with the value; `nil` while pending. May be read on any thread.
    @inlinable
    public var result: Result<T, any Error>? {
        guard let source = core.settled, source.isFulfilled else { return nil }
        return .success(source.of(T.self).value)
    }

    /// Returns this guarantee as a promise, without an allocation.
    @inlinable
    public func asPromise() -> Promise<T> { Promise(core) }
}

extension Guarantee: CustomStringConvertible, CustomDebugStringConvertible {
    /// `Guarantee(3)`, or `Guarantee(…Int)` while pending; if named, `Guarantee("idle": 3)`.
    public var description: String {
        settledValue.map { "Guarantee(\(core.label)\($0))" } ?? "Guarantee(\(core.label)…\(T.self))"
    }

    /// `Guarantee<Int>.pending` or `Guarantee<Int>.fulfilled(3)`, followed by the name and the trace, if any.
    public var debugDescription: String {
        let outcome = settledValue.map { "fulfilled(\(String(reflecting: $0)))" } ?? "pending"
        return "Guarantee<\(T.self)>.\(outcome)\(core.remarks)"
    }
}
