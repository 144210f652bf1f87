import ServiceContextModule

/// The `ServiceContext` that was current when this value was made, for handlers that run later.
///
/// Handlers of promises run as jobs of a loop, outside of the task or the handler that has attached them, so task-local
/// values do not reach them. Where they should, they are carried along:
///
/// ```swift
/// let context = CarriedContext()
/// fetch(url)
///     .then { page in context { parse(page) } }
///     .map(on: pool) { tree in context { render(tree) } }
/// ```
///
/// An async function needs none of it: awaiting a promise keeps the context of its task. Nothing is carried where it is not
/// asked for; where it is, a handler on a loop executes 640 instructions more, to bind and unbind a task-local value (callgrind,
/// release, Swift 6.3).
public struct CarriedContext: Sendable {
    /// The context; `nil` if there was none.
    public let context: ServiceContext?

    /// Carries the current context.
    public init() { context = ServiceContext.current }

    /// Carries `context`.
    public init(_ context: ServiceContext?) { self.context = context }

    /// Calls `body` with the context as the current one. Without a context, `body` is called with none.
    public func callAsFunction<Result>(_ body: () throws -> Result) rethrows -> Result {
        try ServiceContext.$current.withValue(context, operation: body)
    }
}
