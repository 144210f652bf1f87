import Promises
import Reactor

extension Connection {
    /// True while the listener that serves this connection drains. The next frame or pause then ends the connection or
    /// its loop. A protocol that can announce the end does so in its next answer, like HTTP with `Connection: close`.
    public var isDraining: Bool { reader.isDraining }

    /// The reason why no further frame is read; `nil` while more may come. Distinguishes the three reasons for the end
    /// of a loop over the input:
    ///
    /// ```swift
    /// connection.forEachLine { line in
    ///     if line == "." { throw StopReading() }
    ///     message += line + "\n"
    /// }.then { () -> Promise<Void> in
    ///     switch connection.inputEnd {
    ///     case nil: store(message)  // StopReading
    ///     case .drained: connection.write("421 shutting down\r\n")
    ///     case .peerEnded: .value
    ///     }
    /// }
    /// ```
    ///
    /// After a drain has ended a loop, every later loop over frames ends at once. Failures are reported by the reads
    /// instead.
    public var inputEnd: InputEnd? {
        if cold?.attachment?.drain?.hasEnded == true { return .drained }
        return reader.hasEnded && !hasInput && failure == nil ? .peerEnded : nil
    }

    /// Declares a pending answer that neither a read nor a queued write shows. Until `answer` has settled,
    /// `Listener.drain` does not treat this connection as idle, and the connection is retained. Does not handle a
    /// rejection of `answer`.
    ///
    /// Not needed while the promise of a `forEachFrame`, `forEachLine` or `forEachChunk` body is pending, which already
    /// makes the connection busy. There are two uses:
    /// - the answer to a frame, if the loop, or the sequence `lines` or `frames`, reads on while the answer is pending.
    ///   In a drain the loop reads no further frame, and ends when the answers declared since its first frame have
    ///   settled;
    /// - a request that is read in several steps, such as a header and a body. Between the steps nothing is buffered,
    ///   so the connection seems to wait for the next request, and only the handler knows better. A loop over frames is
    ///   part of the request, and reads on, if it begins while `answer` is pending, or if its own promise is declared
    ///   at once.
    ///
    /// ```swift
    /// connection.readLine().then { line -> Promise<Void> in
    ///     connection.deferDrain(until: connection.read(exactly: length(line)).then { handle(line, $0) })
    /// }
    /// ```
    @discardableResult
    @available(*, noasync, message: "on a loop write try await firstly { … }.value, else use a synchronous function")
    public func deferDrain<Answer: Thenable>(until answer: Answer) -> Answer {
        loop.assertOwner()
        pendingAnswers += 1
        let declared = ensuredRareState.deferred.add()
        // Ends the declaration even if the promise never settles.
        let end = OnDeinit { [self] in
            pendingAnswers -= 1
            cold?.rare?.deferred.remove(declared)
            if pendingAnswers == 0 { attachment?.drain?.resumeLoop() }
        }
        answer.asPromise().core.watch { _ in withExtendedLifetime(end) {} }
        return answer
    }

    // MARK: Where loops end

    /// Returns the input position of the next unconsumed byte.
    /// - Parameter unbuffered: the number of received bytes that are neither consumed nor buffered.
    func position(unbuffered: Int) -> Int { deliveredByteCount - bufferedByteCount - unbuffered }

    /// True when a drain's last frame has been read, so that the answer should announce the end of the connection.
    package var readsLastFrame: Bool {
        guard let drain = attachment?.drain else { return false }
        return reader.isLastCall || position(unbuffered: 0) >= drain.arrived
    }

    package var hearsLastCall: Bool { reader.isLastCall }

    /// In a drain, returns a promise of the end of the declared answers; `nil` if none is pending.
    package func answersUnderWay() -> Promise<Void>? {
        pendingAnswers > 0 ? attachment?.drain?.parkLoop() : nil
    }

    func beginDrain() {
        let arrived = deliveredByteCount + (lifecycle.hasDescriptor ? socket.unreadBytes : 0)
        attachment?.drain = ConnectionDrain(arrived: arrived)
        reader.beginDrain()
    }

    func noteEndByDrain() { attachment?.drain?.hasEnded = true }

    @usableFromInline
    func numberOfNextLoop() -> Int32 { cold?.rare?.deferred.numberOfNextLoop() ?? 0 }

    /// Decides how a loop over frames, or a sequence, continues between two frames, while the listener drains.
    /// - Parameters:
    ///   - number: from `numberOfNextLoop`.
    ///   - unbuffered: the number of received bytes that are neither consumed nor buffered.
    ///   - isInsideFrame: true if skipped bytes may be the beginning of the next frame.
    ///   - owesNothing: true for a loop that reads ahead, and has not read a frame.
    @usableFromInline
    func boundary(
        of number: Int32, unbuffered: Int, isInsideFrame: Bool, _ owesNothing: Bool = false
    ) -> FrameBoundary {
        guard let drain = attachment?.drain else { return .goOn }
        if (isInsideFrame || reader.hasEnded) && !reader.isLastCall { return .goOn }
        guard drain.isOver(at: position(unbuffered: unbuffered), reader) else { return .goOn }
        let deferred = cold?.rare?.deferred
        // The loop reads a part of a request.
        if Int(pendingAnswers) > deferred?.count ?? 0 || deferred?.hasRequest(before: number) == true { return .goOn }
        if pendingAnswers > 0 || reader.readsAhead && !owesNothing && !reader.isLastCall {
            return (attachment?.drain?.parkLoop()).map { .wait($0.core) } ?? .goOn
        }
        noteEndByDrain()
        return .end
    }

    // MARK: Idle connections

    /// True when the connection waits for its peer and owes the peer nothing.
    var isIdle: Bool {
        lifecycle.isOpenOrFailed && reader.isWaiting && !mayOweAnswers && !owesAnything && !writer.isQueued
    }

    /// True when code reads without waiting for its own answers; over frames, only until the last call.
    private var mayOweAnswers: Bool { reader.readsAhead && !(reader.isLastCall && reader.form == .frames) }

    /// True even when only a part of a request is buffered.
    var owesAnything: Bool { hasInput || pendingAnswers != 0 || cold?.filter?.isBusy == true }

    /// True when a frame loop waits for a further request. False before the first, which is about to come, and if the
    /// protocol announces its end.
    var isBetweenFrames: Bool {
        reader.isWaitingForFrames && deliveredByteCount > 0 && reader.drainRule != .inSilence
    }

    /// - Returns: false if no loop waits for a frame.
    func endWaitingLoop() -> Bool {
        guard reader.isWaitingForFrames, let core = takeReader() else { return false }
        attachment?.drain?.end = position(unbuffered: 0)
        updateInterest()
        core.borrow { $0.enqueueAgain() }
        return true
    }

    func beginLastCall() {
        if reader.isLastCall { return }
        reader.beginLastCall()
        attachment?.drain?.resumeLoop()
        // If the loop does not wait, the promise of its body ends it.
        guard reader.isWaiting, reader.form == .chunk, let core = takeReader() else { return }
        updateInterest()
        core.borrow { $0.enqueueAgain() }
    }

    /// Notes the end by the drain if a read begins after the last call, apparently between two requests.
    /// - Returns: the error of the read; `nil` if the read belongs to a request.
    func refuseAtLastCall() -> SystemError? {
        // The body of a loop may read on without `deferDrain`.
        if reader.loops > 0 || reader.readsAhead || pendingAnswers > 0 || cold?.filter?.isBusy == true { return nil }
        return endOfReads()
    }

    private func endOfReads() -> SystemError {
        noteEndByDrain()
        return SystemError(ended: readCall, isCancellation: true, detail: "the listener drains")
    }

    /// - Returns: a promise that is rejected when the declared answers have settled.
    func endOfChunks() -> Promise<Void> {
        let error = endOfReads()
        return answersUnderWay()?.done { throw error } ?? Promise(error: error)
    }
}
