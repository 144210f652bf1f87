import Promises
import Reactor
import ReactorLibc

extension Connection: ReadinessHandler {
    package func loopWillEnd() {
        guard lifecycle.hasDescriptor else { return }
        recordEnd(.loopEnded)
        let error = SystemError(writeCall, ECANCELED, detail: "the loop has ended")
        ensuredRareState.failure = ConnectionFailure(error: error, cause: cold?.rare?.failure?.cause)
        lifecycle.fail()
        failWrites()
        release()
    }

    package func descriptorIsReady(_ ready: Interest) -> Interest {
        interest.registered.subtract(ready)
        // Each step may end the connection.
        if ready.contains(.writing) { flush() }
        if ready.contains(.reading) {
            if path != .direct {
                readIndirectly()
            } else if reader.isWaiting {
                receiveInput()
            }
        }
        if !ready.isDisjoint(with: .peerGone) {
            if !ready.isDisjoint(with: [.error, .hangUp]), cold?.rare?.readRateLimiter?.end() == true { return [] }
            // First, because `eventArrived` may turn the event loop.
            updateInterestRarely()
            PeerWatching.eventArrived(ready, at: self)
        }
        let wanted = wantedInterest
        guard wanted != interest.registered, lifecycle.hasDescriptor else { return [] }
        if wanted.isEmpty { updateInterestRarely() } else { interest.registered = wanted }
        return wanted
    }

    package func interestWasRefused(_ error: SystemError) { refuse(error) }

    @inline(never)
    private func updateInterestRarely() { updateInterest() }

    @inline(never)
    private func readIndirectly() {
        if path == .discarding { cold?.close?.discardInput() } else { cold?.filter?.descriptorIsReadable() }
    }

    /// True when a read is pending, or when the filter or the close needs input.
    @inline(__always)
    var pollsForInput: Bool { path == .direct ? reader.isWaiting : pollsIndirectly }

    @inline(never)
    private var pollsIndirectly: Bool { path == .discarding ? discardsInput : cold?.filter?.pollsForInput == true }

    /// True when a close reads and drops input, on the path `discarding`, until the peer has ended.
    var discardsInput: Bool {
        lifecycle == .lingering
            || lifecycle == .flushing && path == .discarding && !reader.hasEnded && cold?.close?.inputHasEnded == false
    }

    /// Updates the poller's interest, after each change of the reader, the writer and the watches.
    // Inline: each message calls it once or twice, and a call would cost 14 of 5,000 instructions.
    @inline(__always)
    func updateInterest() {
        let wanted = wantedInterest
        if wanted != interest.registered { register(wanted) }
    }

    @inline(__always)
    private var wantedInterest: Interest {
        let wanted = interest.wanted(toRead: pollsForInput, toWrite: writer.wantsRoom)
        return wanted.isEmpty ? restingInterest : wanted
    }

    @inline(__always)
    private func register(_ wanted: Interest) {
        guard lifecycle.hasDescriptor else { return }
        interest.registered = wanted
        do throws(SystemError) { try loop.setInterest(wanted, of: fd, handler: self) } catch { refuse(error) }
    }

    /// Lets the poller report errors and hang-ups, but no input. Records the wanted interest, so that only a change
    /// registers it again.
    func pauseReading() {
        let wanted = wantedInterest
        register(wanted.subtracting(.reading).union([.error, .hangUp]))
        interest.registered = wanted
    }

    func resumeReading() { register(wantedInterest) }

    /// Fails the connection, because the poller would never report an event to it.
    @inline(never)
    private func refuse(_ error: SystemError) {
        interest.registered = []
        endRead(error)
        fail(error)
    }

    /// The interest while no operation is pending: a failure, and perhaps the peer's end.
    @inline(never)
    private var restingInterest: Interest {
        guard lifecycle == .open, let resting = cold?.attachment?.restingInterest else { return [] }
        return reader.hasEnded ? resting.subtracting(.readHangUp) : resting
    }

    var isReadyInKernel: Bool { isReady(toRead: pollsForInput, toWrite: writer.isQueued) }

    @inline(never)
    func noteSpuriousReadiness(_ call: SystemCall) {
        loop.noteSpuriousReadiness(
            of: fd, progress: bytesReceived &+ bytesSent,
            SystemError(call, EAGAIN, detail: "\(self), which is reported as ready"))
    }
}

extension Connection: CancellableWork {
    /// Ends the read, write or watch whose `promise` was cancelled. The next read gets the input.
    /// - Returns: false if none belongs to `promise`, or if the kernel has taken a part of the write.
    package func stop(_ promise: PromiseCore) -> Bool {
        withdrawRead(promise) || withdrawWrite(promise) || PeerWatching.withdraw(ObjectIdentifier(promise), from: self)
    }
}
