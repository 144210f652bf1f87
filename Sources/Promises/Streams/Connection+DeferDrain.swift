import Reactor

extension Connection {
    /// Declares a pending answer to the peer that neither a read nor the write queue shows. Until `answer` has settled,
    /// with a value or an error, `Listener.drain` does not treat this connection as idle, and the connection is
    /// retained: releasing the last other reference does not close it. This does not handle the rejection of `answer`.
    ///
    /// While the promise of a body of `forEachFrame`, `forEachLine` or `forEachChunk` is pending, the connection is
    /// busy anyway. A handler that reads a request in several steps without such a loop needs this: between the steps,
    /// of a header and a body for instance, nothing is buffered, and the connection looks as if it waited for the next
    /// request. Only the handler knows whether a read continues a request; in a protocol without answers, each read
    /// looks like that.
    ///
    /// ```swift
    /// connection.readLine().then { line -> Promise<Void> in
    ///     connection.deferDrain(until: connection.read(exactly: length(line)).then { handle(line, $0) })
    /// }
    /// ```
    /// - Parameter answer: the pending answer.
    /// - Returns: `answer`.
    @discardableResult
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func deferDrain<Answer: Thenable>(until answer: Answer) -> Answer {
        loop.assertOwner()
        answer.asPromise().core.watch(AnswerEnds(answer: AnswerUnderWay(self)))
        return answer
    }
}

/// A pending answer of a connection to its peer. The connection is busy for the lifetime of this object.
private final class AnswerUnderWay {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        connection.pendingAnswers += 1
    }

    deinit { connection.pendingAnswers -= 1 }
}

/// Releases the pending answer when its promise settles. If the promise never settles, this is released without having
/// run.
private struct AnswerEnds: Operation {
    typealias Input = Never
    typealias Output = Void
    let answer: AnswerUnderWay

    func run(_ source: AnySource, _ core: PromiseCore) { core.finish(()) }
}
