import Reactor

/// A value that is available now, later, or never. A promise is fulfilled or rejected once, and then constant.
///
/// ```swift
/// connect(to: address)
///     .then { connection in connection.write("ping").then { connection.receive() } }
///     .done { reply in print(reply) }
///     .catch { error in print(error) }
/// ```
///
/// Handlers run on the thread that attached them, as jobs of its `EventLoop`, in the order of attachment. They never
/// run inside the call that attaches them or settles the promise, and so may capture anything of their thread. A
/// promise of a `Sendable` value may be settled, observed and read on any thread.
///
/// Making a promise starts its work. The copies of a promise are the same promise. Semantics follow Promises/A+ 2.1 to
/// 2.3 where Swift's types leave a choice.
public struct Promise<T> {
    @usableFromInline package let core: PromiseCore

    @inlinable
    package init(_ core: PromiseCore) { self.core = core }

    /// Makes a promise that `body` settles, now or later, through the resolver. `body` runs at once. An error that it
    /// throws rejects the promise, unless that has settled.
    ///
    /// ```swift
    /// let answer = Promise<Answer> { resolver in
    ///     database.query("…") { result in resolver.resolve(result) }     // a Result, or (value, error)
    /// }
    /// ```
    ///
    /// - Parameter body: the work, or its start.
    @inlinable
    public init(_ file: StaticString = #fileID, _ line: UInt = #line, resolver body: (Resolver<T>) throws -> Void) {
        core = ResolverCore(of: T.self, file, line).traced(Self.self, file, line)
        let resolver = Resolver<T>(core)
        do { try body(resolver) } catch { resolver.reject(error) }
    }

    /// Makes a pending promise and its resolver.
    ///
    /// ```swift
    /// let (reply, resolver) = Promise<String>.pending()
    /// waiting[id] = resolver                         // whoever has the reply calls resolver.fulfill("…")
    /// return reply.timeout(.seconds(5))
    /// ```
    @inlinable @inline(__always)
    public static func pending(
        _ file: StaticString = #fileID, _ line: UInt = #line
    ) -> (promise: Promise<T>, resolver: Resolver<T>) {
        // Inlined, so that no resolver is allocated if the caller itself releases it.
        let core = ResolverCore(of: T.self, file, line).traced(Self.self, file, line)
        return (Promise(core), Resolver(core))
    }

    /// Makes a fulfilled promise.
    ///
    /// ```swift
    /// func page(_ url: String) -> Promise<Page> {
    ///     if let page = cache[url] { return .value(page) }
    ///     return fetch(url)
    /// }
    /// ```
    @inlinable
    public static func value(_ value: T) -> Promise<T> { Promise(PromiseCore.fulfilled(value)) }

    /// Makes a rejected promise.
    @inlinable
    public init(error: any Error, _ file: StaticString = #fileID, _ line: UInt = #line) {
        core = PromiseCore(error: error, at: CallSite(file, line)).traced(Self.self, file, line)
    }

    /// Makes a rejected promise whose reports name no line, since that would be the library's.
    @usableFromInline
    package init(refused error: any Error) { core = PromiseCore(error: error) }

    /// Makes a promise that settles as `other` does: a guarantee, or your own thenable.
    @inlinable
    public init<Other: Thenable>(_ other: Other) where Other.T == T { self = other.asPromise() }
}

extension Promise where T == Void {
    /// Makes a fulfilled promise. (In other libraries `Promise()` is pending; here `pending()` makes such a promise.)
    @inlinable
    public init() { self = .value }

    /// A fulfilled promise: always the same one, so nothing is allocated.
    @inlinable
    public static var value: Promise<Void> { Promise(PromiseCore.void) }
}

// Sound by PromiseCore's own rules: all that is shared are values of T, which may cross threads.
extension Promise: Sendable where T: Sendable {}

extension Promise: Catchable {
    /// Calls `handler` once the promise settles, on the settling thread, inside the settling call; if already settled,
    /// at once. Combinators are built on this. Elsewhere use `done`, `catch` or `tap`.
    /// - Parameter handler: called exactly once, with the outcome.
    @inlinable
    public func pipe(to handler: @escaping @Sendable (Result<T, any Error>) -> Void) {
        core.attach(PromiseCore(inline: Notification { handler($0.of(T.self).result) }))
    }

    /// The outcome; `nil` while pending. May be read on any thread. Reading an error here, or through `error`, handles
    /// it.
    @inlinable
    public var result: Result<T, any Error>? {
        let outcome = outcome
        if case .failure = outcome { core.markHandled() }
        return outcome
    }

    /// The outcome, read without handling the error.
    @inlinable
    var outcome: Result<T, any Error>? {
        core.settled?.of(T.self).result
    }

    /// Returns this promise.
    @inlinable
    public func asPromise() -> Promise<T> { self }
}

extension Promise: CustomStringConvertible, CustomDebugStringConvertible {
    /// `Promise(3)`, `Promise(theError)`, or `Promise(…Int)` while pending; if named, `Promise("login": 3)`.
    public var description: String {
        switch outcome {
        case nil: "Promise(\(core.label)…\(T.self))"
        case .success(let value): "Promise(\(core.label)\(value))"
        case .failure(let error): "Promise(\(core.label)\(error))"
        }
    }

    /// `Promise<Int>.pending`, `Promise<Int>.fulfilled(3)` or `Promise<Int>.rejected(theError)`, followed by the name
    /// and the trace, if known: `Promise<Int>.pending "login" (made at App/Login.swift:12 → map at
    /// App/Login.swift:14)`.
    public var debugDescription: String {
        let outcome =
            switch outcome {
            case nil: "pending"
            case .success(let value): "fulfilled(\(String(reflecting: value)))"
            case .failure(let error): "rejected(\(String(reflecting: error)))"
            }
        return "Promise<\(T.self)>.\(outcome)\(core.remarks)"
    }
}
