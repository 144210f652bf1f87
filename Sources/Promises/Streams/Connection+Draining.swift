import Reactor

// A connection whose listener drains.

extension Connection {
    /// `true` while the listener that serves this connection drains: the next pause ends the connection, or its frame
    /// loop. A protocol that can announce its end does so with its next answer, such as HTTP with `Connection: close`.
    public var isDraining: Bool { cold?.attachment?.isDraining == true }

    /// Whether it waits for its peer and owes it nothing: a read is pending, no part of a request has arrived, nothing
    /// is queued, and no answer is pending.
    var isIdle: Bool { lifecycle.isOpen && reader.isWaiting && !reader.readsAhead && !owesAnything && !writer.isQueued }

    /// Whether it owes its peer an answer, or has a part of a request.
    var owesAnything: Bool { hasInput || pendingAnswers != 0 || layer?.isBusy == true }

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
