import ServiceContextModule

/// The `ServiceContext` that was current when this value was created, for handlers that run later.
///
/// Handlers of promises run as jobs of a loop, outside of the task or handler that attached them, so task-local values
/// do not reach them. Carry the context along where a handler needs it:
///
/// ```swift
/// let context = CarriedContext()
/// fetch(url)
///     .then { page in context { parse(page) } }
///     .map(on: pool) { tree in context { render(tree) } }
/// ```
///
/// An async function needs none of this: awaiting a promise keeps the context of its task. Only handlers that carry a
/// context pay for it: on a loop, 640 more instructions, to bind and unbind a task-local value (callgrind, release,
/// Swift 6.3).
public struct CarriedContext: Sendable {
    /// The context; `nil` if there was none.
    public let context: ServiceContext?

    /// Carries the current context.
    public init() { context = ServiceContext.current }

    /// Carries `context`.
    public init(_ context: ServiceContext?) { self.context = context }

    /// Calls `body` with the context as the current one, or with none if there is none.
    public func callAsFunction<Result>(_ body: () throws -> Result) rethrows -> Result {
        try ServiceContext.$current.withValue(context, operation: body)
    }
}
