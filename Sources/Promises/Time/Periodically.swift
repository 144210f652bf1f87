import Reactor

/// Calls `body` at most once a period, waits for the promise that it returns, and repeats this as long as the promise's
/// value is `true`. No two rounds overlap.
///
/// ```swift
/// let cleaning = periodically(every: .seconds(60)) { removeOldFiles().map { true } }
/// cleaning.cancel()                       // ends the pause, or the round under way
/// ```
///
/// The first round begins inside this call. The next one begins one period after the start of the previous one, or at
/// once if that one has taken longer. Rounds do not drift: after a round that begins late by less than a period, the
/// next one is on time again. The repetition may run forever; its memory use does not grow.
/// - Parameters:
///   - period: the time from the beginning of a round to that of the next; zero or less for no pause.
///   - body: starts one round; called first inside this call and then in jobs of this thread's loop.
/// - Returns: a promise that is fulfilled after the first round with the value `false`. It is rejected with the first
///   error that a promise of `body` is rejected with or that `body` throws, which ends the repetition. Cancelling it
///   cancels the promise of the current round, if no other handler waits for it.
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
