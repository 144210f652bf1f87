/// A promise whose work begins when it is used for the first time.
///
/// ```swift
/// let config = LazyPromise { resolver in load { resolver.resolve($0, $1) } }
/// config.done { use($0) }.cauterize()      // loads; every later use gets this same promise
/// ```
///
/// Operators, combinators, `pipe` and `asPromise` start the work; `result` and the properties made of it do not. As the
/// body may capture anything, it runs on the thread of the first use, and the object is not `Sendable`.
public final class LazyPromise<T>: Catchable {
    private enum State {
        case idle((Resolver<T>) throws -> Void)
        case started(Promise<T>)
    }

    private var state: State
    private let file: StaticString
    private let line: UInt

    /// A promise that `body` settles through the resolver, once the promise is first used.
    /// - Parameters:
    ///   - file: the file that reports name; the caller's by default.
    ///   - line: the line that reports name.
    ///   - body: called at most once, as the body of `Promise.init` is, and released when it has returned.
    public init(
        _ file: StaticString = #fileID, _ line: UInt = #line, resolver body: @escaping (Resolver<T>) throws -> Void
    ) {
        state = .idle(body)
        self.file = file
        self.line = line
    }

    /// Whether the body has been called. True while it runs.
    public var isStarted: Bool {
        if case .started = state { true } else { false }
    }

    /// Starts the work, if no earlier call has. The first call runs the body before it returns; the body may itself
    /// call this.
    /// - Returns: the promise, which is one promise for all calls.
    public func asPromise() -> Promise<T> {
        switch state {
        case .started(let promise): return promise
        case .idle(let body):
            let (promise, resolver) = Promise<T>.pending(file, line)
            state = .started(promise)
            do { try body(resolver) } catch { resolver.reject(error) }
            return promise
        }
    }

    /// As `Promise.pipe`; starts the work.
    /// - Parameter handler: called exactly once.
    public func pipe(to handler: @escaping @Sendable (Result<T, any Error>) -> Void) { asPromise().pipe(to: handler) }

    /// The outcome, or `nil` while the work has not been started or has not ended. Starts nothing. Reading an error
    /// counts as handling it, as with `Promise.result`.
    public var result: Result<T, any Error>? {
        if case .started(let promise) = state { promise.result } else { nil }
    }
}

extension LazyPromise: CustomStringConvertible {
    /// The description of the promise; `LazyPromise(…Int)` before the work is started.
    public var description: String {
        if case .started(let promise) = state { promise.description } else { "LazyPromise(…\(T.self))" }
    }
}
