/// A promise whose work begins when it is first asked for.
///
/// ```swift
/// let config = LazyPromise { resolver in load { resolver.resolve($0, $1) } }
/// config.done { use($0) }.cauterize()      // loads; whoever comes later gets the same promise
/// ```
///
/// Operators, combinators, `pipe` and `asPromise` ask for it; `result` and what is made of it do not. As the body may capture
/// anything, it runs on the thread of whoever asks first, and the object is not `Sendable`.
public final class LazyPromise<T>: Catchable {
    private enum State {
        case idle((Resolver<T>) throws -> Void)
        case started(Promise<T>)
    }

    private var state: State
    private let file: StaticString
    private let line: UInt

    /// A promise that `body` is to settle through the resolver, once somebody asks for it. `body` is called once at most, as
    /// that of `Promise.init` is, and released when it has returned.
    public init(
        _ file: StaticString = #fileID, _ line: UInt = #line, resolver body: @escaping (Resolver<T>) throws -> Void
    ) {
        state = .idle(body)
        self.file = file
        self.line = line
    }

    /// Whether the body has been called, or is running.
    public var isStarted: Bool {
        if case .started = state { true } else { false }
    }

    /// The promise. The first time, the body is called before this returns; it may itself ask for the promise.
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
    public func pipe(to handler: @escaping @Sendable (Result<T, any Error>) -> Void) { asPromise().pipe(to: handler) }

    /// The outcome, or `nil` while the work has not been started or goes on. Starts nothing. Counts as being told of the
    /// error, as `Promise.result` does.
    public var result: Result<T, any Error>? {
        if case .started(let promise) = state { promise.result } else { nil }
    }
}

extension LazyPromise: CustomStringConvertible {
    /// As of the promise; `LazyPromise(…Int)` before that is started.
    public var description: String {
        if case .started(let promise) = state { promise.description } else { "LazyPromise(…\(T.self))" }
    }
}
