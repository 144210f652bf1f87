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
        pendingAnswers += 1
        // If the promise never settles, this is released without having run.
        let end = AtRelease { [self] in pendingAnswers -= 1 }
        answer.asPromise().core.watch { _ in withExtendedLifetime(end) {} }
        return answer
    }
}
