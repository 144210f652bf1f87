import Glibc
import Reactor

extension Connection {
    /// The time limits for reads of frames: `readLine`, `read(exactly:)`, `read(until:)`, `readFrame`, `forEachLine`,
    /// `forEachFrame`. `nil`, the default, means no limits.
    ///
    /// ```swift
    /// connection.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(10))
    /// connection.forEachLine { line in connection.write(answer(to: line)) }.recover { error -> Promise<Void> in
    ///     guard case StreamError.timedOut(let got) = error else { throw error }
    ///     return got == 0 ? .value : connection.write("half a line\n")
    /// }
    /// ```
    ///
    /// At a limit, the pending read is rejected with `StreamError.timedOut(got:)`; `got` is 0 if no byte of a frame has
    /// arrived. The connection stays usable for writes and reads, and the next read gets the bytes of the incomplete
    /// frame. See `FrameTimeouts` for what counts.
    public var frameTimeouts: FrameTimeouts? {
        get { cold?.frameClock?.limits }
        set {
            // A server without limits sets nil on each connection; that must cost nothing.
            if newValue == nil && frameTimeouts == nil { return }
            loop.assertOwner()
            let cold = ensuredColdState
            cold.frameClock?.cancelTimer(on: loop)
            cold.frameClock = newValue.map { FrameClock($0, of: self, continuing: cold.frameClock) }
            if reader.isWaiting && reader.form.isOfFrames { updateFrameDeadline(reader.form) }
        }
    }

    /// Begins a message, as limited by `frameTimeouts.message`, at the next byte that no read has consumed.
    ///
    /// In `forEachFrame`, `forEachLine` and `lines` each frame begins a message, which includes the reads of the body,
    /// also those of a `forEachFrame` or `forEachLine` inside another one's body. So only other handlers call this,
    /// before the first read of each request. Without it each of their reads is a separate message. Without
    /// `frameTimeouts` it has no effect.
    public func beginMessage() {
        loop.assertOwner()
        cold?.frameClock?.beginMessage(of: self)
    }
}

// What reads tell the clock, and its timer.

extension Connection {
    /// As `refusalToRead`, for a loop that looks for its next frame: this begins a message, unless the loop is in the
    /// body of another.
    /// - Parameter unbuffered: the number of received bytes that are neither consumed nor buffered.
    @usableFromInline
    func refusalToBeginFrame(unbuffered: Int = 0) -> SystemError? {
        if let clock = cold?.frameClock, reader.loops < 2 { clock.beginMessage(of: self, unbuffered: unbuffered) }
        return refusalToRead
    }

    /// Notes that a decoder skips the first `count` of the `unconsumed` bytes, before they are dropped.
    @usableFromInline @inline(never)
    func noteSkipped(_ count: Int, of unconsumed: Int) {
        cold?.frameClock?.skip(count, at: deliveredByteCount - unconsumed)
    }

    /// Computes the deadline of a read that begins to wait, or that has received a part of its frame.
    func updateFrameDeadline(_ form: InputForm) {
        guard let clock = cold?.frameClock else { return }
        clock.waiting = Uncounted(self)
        // A frame of the outer loop begins a message, not one of a loop in its body.
        clock.update(
            received: deliveredByteCount, buffered: bufferedByteCount,
            beginsMessage: form == .frames && reader.loops < 2, at: loop.now)
        startFrameTimer(clock)
    }

    /// Starts the timer. One that fires before the deadline is kept, and is set anew when it fires.
    private func startFrameTimer(_ clock: FrameClock) {
        if let moment = clock.momentToArm(on: loop) { startFrameTimer(clock, at: moment) }
    }

    /// The timer does not keep the loop alive, since it outlives the read. The read does.
    private func startFrameTimer(_ clock: FrameClock, at moment: LoopInstant) {
        // Without a reference to the connection: a weak one would make all others dearer to count.
        let timer = loop.addBackgroundTimer(at: moment) {
            clock.timerDidFire()
            // If no read waits, the next one starts the timer. Retained until the end: the poller may retain the
            // connection only for this read.
            if let connection = clock.waiting?.object { connection.frameTimerFired(clock) }
        }
        clock.timerDidStart(timer)
    }

    private func frameTimerFired(_ clock: FrameClock) {
        guard lifecycle.isOpen, reader.isWaiting else { return }
        guard clock.deadline <= loop.now else { return startFrameTimer(clock) }
        // Bytes that have reached the kernel in time are not late: they are read before the limit applies.
        if clock.mayPostpone && isReadyInKernel {
            clock.postpone()
            return startFrameTimer(clock, at: loop.now)
        }
        let got = clock.expire(received: deliveredByteCount) ?? bufferedByteCount
        rejectRead(StreamError.timedOut(got: got))
        updateInterest()
    }
}
