import Reactor

/// How the connections of a listener ended that was drained.
public struct DrainResult: Hashable, Sendable {
    /// Those that were closed because they waited for their peers and owed them nothing.
    public internal(set) var idle = 0
    /// Those whose handlers came to their end by themselves.
    public internal(set) var finished = 0
    /// Those that were aborted at the deadline.
    public internal(set) var aborted = 0

    /// Of a listener that had no connections.
    public init() {}
}

extension Listener {
    /// Ends it all in order, within `deadline`: stops listening at once, closes the connections of `serve` that are idle, lets
    /// the busy ones finish, and aborts at the deadline what is still there.
    ///
    /// *Idle* is a connection that waits in a read, of which no part of a frame has come, and that has nothing queued: its
    /// peer has been answered as far as can be seen from here. It is closed at once, or within 20 ms of becoming so; the
    /// waiting read fails with `ECANCELED`. A connection is never idle whose handler reads on while answers are under way: in
    /// a `pipe`, or by the forms of `forEachLine` and `forEachChunk` that wait for nothing; nor one that is `busy`. At the
    /// deadline the rest are aborted and what their handlers wait for is cancelled. Clients in the backlog
    /// are reset; to take them, call `close(drain: true)` before.
    ///
    /// Connections that were taken with `accept` are not the listener's. Again: the same guarantee, and the first deadline
    /// stands.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func drain(deadline: Duration) -> Guarantee<DrainResult> {
        if let drain { return drain.guarantee }
        let drain = ListenerDrain()
        self.drain = drain
        if !isClosed { end(nil) }
        sweep(drain)
        if running.count == 0 {
            drain.finish()
        } else {
            drain.start(
                loop.schedule(every: ListenerDrain.interval) { [self] in sweep(drain) },
                loop.schedule(after: deadline) { [self] in abortRest(drain) })
        }
        return drain.guarantee
    }

    private func sweep(_ drain: ListenerDrain) {
        for entry in running.all where entry.connection.isIdle {
            drain.isIdle(entry.connection)
            entry.connection.close()
        }
    }

    private func abortRest(_ drain: ListenerDrain) {
        let rest = running.all
        for entry in rest { drain.isAborted(entry.connection) }
        drain.finish()
        for entry in rest {
            entry.connection.abort()
            entry.waiter?.cancel()
        }
    }
}

/// The draining of a listener, and afterwards its account.
final class ListenerDrain {
    let guarantee: Guarantee<DrainResult>
    private let resolve: (DrainResult) -> Void
    private var result = DrainResult()
    // By identity: the listener holds them while they are asked for.
    private var ended: Set<ObjectIdentifier> = []
    private var timers: [EventLoop.Timer] = []
    private var isFinished = false

    /// How often it is looked whether a busy connection has become idle.
    static var interval: Duration { .milliseconds(20) }

    init() { (guarantee, resolve) = Guarantee<DrainResult>.pending() }

    func start(_ timers: EventLoop.Timer...) {
        // An inline handler of what was closed may have been the last.
        if isFinished { for timer in timers { timer.cancel() } } else { self.timers = timers }
    }

    func isIdle(_ connection: Connection) {
        if ended.insert(ObjectIdentifier(connection)).inserted { result.idle += 1 }
    }

    func isAborted(_ connection: Connection) {
        if ended.insert(ObjectIdentifier(connection)).inserted { result.aborted += 1 }
    }

    /// Whether its end was the listener's doing.
    func hasEnded(_ connection: Connection) -> Bool { ended.contains(ObjectIdentifier(connection)) }

    func isDone(_ connection: Connection, left: Int) {
        if !hasEnded(connection) { result.finished += 1 }
        if left == 0 { finish() }
    }

    func finish() {
        if isFinished { return }
        isFinished = true
        for timer in timers { timer.cancel() }
        timers = []
        resolve(result)
    }
}

extension Connection {
    /// Says that something is under way for the peer, which neither a read nor the queue of writes shows: until `answer`
    /// has settled, whichever way, `Listener.drain` does not take this connection for idle. So long it is also kept: letting
    /// go of the last reference does not close it. A rejection of `answer` is as unhandled as before.
    /// - Returns: `answer`.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func busy<T>(until answer: Promise<T>) -> Promise<T> {
        watch(answer.core)
        return answer
    }

    /// The same for what cannot fail.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func busy<T>(until answer: Guarantee<T>) -> Guarantee<T> {
        watch(answer.core)
        return answer
    }

    private func watch(_ answer: Core) {
        loop.assertOwner()
        _ = answer.derive(AnswerEnds(answer: AnswerUnderWay(self)), role: .watching)
    }
}

/// Something that a connection owes its peer, for as long as this lives.
private final class AnswerUnderWay {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        connection.answersUnderWay += 1
    }

    deinit { connection.answersUnderWay -= 1 }
}

/// An answer has been given, or will never be: in the latter case this is let go without being run.
private struct AnswerEnds: Operation {
    typealias Input = Void
    typealias Output = Void
    let answer: AnswerUnderWay

    func run(_ source: Source<Void>, _ core: Core) { core.finish(()) }
}
