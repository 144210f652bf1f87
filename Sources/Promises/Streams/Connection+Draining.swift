import Reactor

// A connection whose listener is being drained.

extension Connection {
    /// Whether the listener that serves this connection is being drained: the next pause ends the connection, or its
    /// loop over frames. A protocol that can announce its end does so with its next answer, such as HTTP with
    /// `Connection: close`.
    public var isDraining: Bool { cold?.attachment?.isDraining == true }

    /// Whether it waits for its peer and owes it nothing: a read waits, nothing of a request has arrived yet, nothing
    /// is queued, and no answer is pending.
    var isIdle: Bool { lifecycle.isOpen && reader.isWaiting && !reader.readsAhead && !owesAnything && !writer.isQueued }

    /// Whether it owes its peer an answer, or has something of a request.
    var owesAnything: Bool { hasInput || pendingAnswers != 0 || layer?.isBusy == true }

    /// Whether a loop over frames waits for the next one, and input has arrived before: a client that has only just
    /// connected is about to send its request.
    var isBetweenFrames: Bool { reader.isWaiting && cold?.frames?.isLoopWaiting == true && deliveredByteCount > 0 }

    /// Ends the loop over frames that waits, so that its handler can finish.
    /// - Returns: false if there is none.
    func endWaitingLoop() -> Bool { reader.isWaiting && cold?.frames?.endWaitingLoop() == true }
}
