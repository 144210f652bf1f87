/// Calls `body` and waits for its promise, again and again, as long as the promise's value is `true`.
///
/// ```swift
/// repeatWhile { connection.receive().then { connection.write($0) }.map { !isClosing } }
/// ```
///
/// The loop's other work runs between two calls. Takes constant memory. Cancelling the result cancels the current
/// round's promise, unless another handler waits for it.
/// - Parameter body: starts one round; called first inside this call and then in jobs on this thread's loop.
/// - Returns: a promise that is fulfilled after the first round with the value `false`. The first error from `body` or
///   its promises rejects it.
@available(*, noasync, message: "no loop runs the handler in an async function; use on:, or await value")
@inlinable
public func repeatWhile<Next: Thenable>(
    _ body: @escaping () throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> where Next.T == Bool {
    let series = SequentialOperation<Void>(while: { try body().asPromise().core })
    return Promise(series.begin("repeatWhile", as: Promise<Void>.self, file, line))
}

extension SequentialOperation where Value == Void {
    @inlinable
    init(while body: @escaping () throws -> PromiseCore) {
        self.init { source, core in
            let continues = source?.payload.value(as: Bool.self) ?? true
            if continues { return try body() }
            core.finish(())
            return nil
        }
    }
}
