import Reactor

extension Connection {
    /// Declares an answer to the peer that neither a read nor the queue of writes shows: until `answer` has settled,
    /// with a value or an error, `Listener.drain` does not consider this connection idle. During that time the
    /// connection is also retained: releasing the last other reference does not close it. This does not handle a
    /// rejection of `answer`.
    ///
    /// ```swift
    /// connection.deferDrain(until: database.find(key).then { connection.write($0) })
    /// ```
    ///
    /// While the promise that the body of `forEachFrame`, `forEachLine` or `forEachChunk` has returned is pending, the connection
    /// is busy without it. A handler that reads a request in several steps without such a loop needs it: between the steps, of
    /// a header and a body for instance, nothing is buffered, and the connection looks as if it waited for the next request.
    /// Whether a read continues a request only the handler knows; a protocol without answers looks the same.
    ///
    /// ```swift
    /// connection.readLine().then { line -> Promise<Void> in
    ///     connection.deferDrain(until: connection.read(exactly: length(line)).then { handle(line, $0) })
    /// }
    /// ```
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func deferDrain<T>(until answer: Promise<T>) -> Promise<T> {
        watch(answer.core)
        return answer
    }

    /// As the form with a promise, for an answer that cannot fail.
    @discardableResult
    @available(*, noasync, message: "an async function has no loop of its own")
    public func deferDrain<T>(until answer: Guarantee<T>) -> Guarantee<T> {
        watch(answer.core)
        return answer
    }

    private func watch(_ answer: PromiseCore) {
        loop.assertOwner()
        answer.watch(AnswerEnds(answer: AnswerUnderWay(self)))
    }
}

/// An answer that a connection owes its peer, for as long as this object lives.
private final class AnswerUnderWay {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
        connection.pendingAnswers += 1
    }

    deinit { connection.pendingAnswers -= 1 }
}

/// Releases the answer once it has been given. If it never will be, this is dropped without being run.
private struct AnswerEnds: Operation {
    typealias Input = Never
    typealias Output = Void
    let answer: AnswerUnderWay

    func run(_ source: AnySource, _ core: PromiseCore) { core.finish(()) }
}
