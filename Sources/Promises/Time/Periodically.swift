import Reactor

/// Calls `body` at most once per period and waits for its promise, as long as the promise's value is `true`. Rounds do
/// not overlap.
///
/// ```swift
/// let cleaning = periodically(every: .seconds(60)) { removeOldFiles().map { true } }
/// cleaning.cancel()                       // ends the pause, or the round under way
/// ```
///
/// The first round begins inside this call. The next begins one period after the start of the previous round, or at
/// once if that round took longer. Rounds do not drift: after a round that begins late by less than a period, the next
/// is on time again. Takes constant memory.
/// - Parameters:
///   - period: the time between the starts of two rounds. Zero or less for no pause.
///   - body: starts one round; called first inside this call and then in jobs on this thread's loop.
/// - Returns: a promise that is fulfilled after the first round with the value `false`. The first error from `body` or
///   its promises rejects it. Cancelling it cancels the current round's promise, unless another handler waits for it.
@available(*, noasync, message: "an async function has no loop of its own; use Task.sleep")
@inlinable
public func periodically<Next: Thenable>(
    every period: Duration, while body: @escaping () throws -> Next, file: StaticString = #fileID, line: UInt = #line
) -> Promise<Void> where Next.T == Bool {
    let series = SequentialOperation<Void>(every: period, while: { try body().asPromise().core })
    return Promise(series.begin("periodically", as: Promise<Void>.self, file, line))
}

extension SequentialOperation where Value == Void {
    @usableFromInline
    init(every period: Duration, while body: @escaping () throws -> PromiseCore) {
        let loop = EventLoop.ofCurrentThread
        var next = loop.now
        var isPause = true
        self.init { source, core in
            if !isPause, let source {
                guard source.payload.value(as: Bool.self) else {
                    core.finish(())
                    return nil
                }
                isPause = true
                return TimerPromise.make(at: next)
            }
            isPause = false
            let now = loop.now
            next = next + period > now ? next + period : now + period
            return try body()
        }
    }
}
