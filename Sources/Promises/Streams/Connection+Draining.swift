import Reactor

// A connection whose listener is being drained.

extension Connection {
    /// Whether the listener that serves this connection is being drained: the next pause ends the connection, or its
    /// loop over frames. A protocol that can announce its end does so with its next answer, such as HTTP with
    /// `Connection: close`.
    public var isDraining: Bool { cold?.attachment?.isDraining == true }

    /// Whether it waits for its peer and owes it nothing: a read waits, nothing of a request has arrived yet, nothing
    /// is queued, and no answer is pending.
    var isIdle: Bool {
        let isWaiting = lifecycle.isOpen && reader.isWaiting && !hasInput && cold?.filter?.isBusy != true
        return isWaiting && !writer.isQueued && !reader.readsAhead && pendingAnswers == 0
    }

    /// Whether a loop over frames or lines waits for input, and not a single read.
    private var isInFrameLoop: Bool { reader.isWaiting && cold?.pendingFrame.map { $0.decode == nil } == true }

    /// Whether a loop over frames waits for the next one, and input has arrived before: a client that has only just
    /// connected is about to send its request.
    var isBetweenFrames: Bool { isInFrameLoop && (cold?.filter?.deliveredCount ?? bytesReceived) > 0 }

    /// Ends the loop over frames that waits, so that its handler can finish.
    /// - Returns: false if there is none.
    func endIdleLoop() -> Bool {
        guard isInFrameLoop, let cold, let promise = reader.take()?.promise else { return false }
        cold.attachment?.endsFrameLoop = true
        cold.pendingFrame = nil
        updateInterest()
        promise.fulfill(())
        return true
    }
}
