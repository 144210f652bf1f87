import Reactor

// A connection whose listener drains.

extension Connection {
    /// `true` while the listener that serves this connection drains: the next pause ends the connection, or its frame
    /// loop. A protocol that can announce its end does so with its next answer, such as HTTP with `Connection: close`.
    public var isDraining: Bool { cold?.attachment?.isDraining == true }

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

    /// Whether it waits for its peer and owes it nothing: a read is pending, no part of a request has arrived, nothing
    /// is queued, and no answer is pending.
    var isIdle: Bool {
        lifecycle.isOpenOrFailed && reader.isWaiting && !reader.readsAhead && !owesAnything && !writer.isQueued
    }

    /// Whether it owes its peer an answer, or has a part of a request.
    var owesAnything: Bool { hasInput || pendingAnswers != 0 || cold?.filter?.isBusy == true }

    /// Whether a frame loop waits for the next frame, and input has arrived before: a new client is about to send its
    /// first request.
    var isBetweenFrames: Bool { reader.isWaitingForFrames && deliveredByteCount > 0 }

    /// Ends the waiting frame loop, so that its handler can finish.
    /// - Returns: false if there is none.
    func endWaitingLoop() -> Bool {
        guard reader.isWaitingForFrames, let core = takeReader() else { return false }
        // A loop that is about to wait ends instead.
        attachment?.endsFrameLoop = true
        updateInterest()
        core.borrow { $0.enqueueAgain() }
        return true
    }
}
