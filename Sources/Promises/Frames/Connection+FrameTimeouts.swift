import Glibc
import Reactor

extension Connection {
    /// Limits the reads of frames: `readLine`, `read(exactly:)`, `read(until:)`, `readFrame`, `forEachLine`, `forEachFrame`.
    /// `nil`, the default, means no limits.
    ///
    /// ```swift
    /// connection.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(10))
    /// connection.forEachLine { line in connection.write(answer(to: line)) }.recover { error -> Promise<Void> in
    ///     guard case StreamError.timedOut(let got) = error else { throw error }
    ///     return got == 0 ? .value : connection.write("half a line\n")
    /// }
    /// ```
    ///
    /// When a limit is reached, the read that waits is rejected with `StreamError.timedOut(got:)`: none of a frame has come
    /// if `got` is 0. The connection remains as it was: it can be written to and read, and what came of the frame is the
    /// next read's. Time that the handler takes does not count, since no read waits meanwhile; what came during it counts
    /// from the next read on.
    ///
    /// A read that continues a request, such as that of a body behind a header, reads a frame of its own: before its first
    /// byte `idle` applies. Change `idle` for it where that is too long.
    ///
    /// It costs a reading of the clock for each read that waits, and for all reads one timer, which is moved once per limit.
    public var frameTimeouts: FrameTimeouts? {
        get { cold?.frameClock?.limits }
        set {
            // A server without limits sets nil on each connection; that must cost nothing.
            if newValue == nil && cold?.frameClock == nil { return }
            loop.assertOwner()
            let cold = ensuredColdState
            cold.frameClock?.timer?.cancel()
            let frame = cold.frameClock?.frame
            cold.frameClock = newValue.map(FrameClock.init)
            cold.frameClock?.frame = frame
            if newValue != nil && cold.pendingFrame != nil { updateFrameDeadline() }
        }
    }

    /// The read of a frame begins to wait, or has got a part of it.
    @inline(never)
    func updateFrameDeadline() {
        guard let cold, var clock = cold.frameClock else { return }
        let now = loop.now
        let count = cold.input.count
        var start = now
        var limit = clock.limits.idle
        if count == 0 {
            clock.frame = nil
            clock.isLate = false
        } else {
            // The frame begins behind all that was consumed. Each further wait of it counts from the first byte.
            let offset = (cold.filter?.deliveredCount ?? bytesReceived) - count
            if let frame = clock.frame, frame.offset == offset { start = frame.since } else { clock.isLate = false }
            clock.frame = (offset, start)
            limit = clock.limits.frame
        }
        clock.deadline = nil
        if let limit, limit > .zero { clock.deadline = start.advanced(by: limit) }
        cold.frameClock = clock
        armFrameTimer(cold)
    }

    /// A timer that is early enough stays: when it fires it is set anew.
    private func armFrameTimer(_ cold: ColdState) {
        guard let clock = cold.frameClock, let deadline = clock.deadline else { return }
        if let timer = clock.timer {
            if clock.due <= deadline { return }
            timer.cancel()
        }
        cold.frameClock?.due = deadline
        cold.frameClock?.timer = loop.schedule(at: deadline) { [weak self] in self?.frameTimerFired() }
    }

    private func frameTimerFired() {
        guard let cold, let clock = cold.frameClock else { return }
        cold.frameClock?.timer = nil
        // Without a read that waits, the next one sets the timer.
        guard lifecycle.isOpen, cold.pendingFrame != nil, let deadline = clock.deadline else { return }
        guard deadline <= loop.now else { return armFrameTimer(cold) }
        // What has reached the kernel in time is not late. It is read once: a peer that sends on does not prolong a frame.
        if !clock.isLate && isReadyInKernel {
            cold.frameClock?.isLate = true
            cold.frameClock?.due = deadline
            cold.frameClock?.timer = loop.schedule(after: .zero) { [weak self] in self?.frameTimerFired() }
            return
        }
        guard let waiter = reader.take() else { return }
        cold.pendingFrame = nil
        updateInterest()
        waiter.promise.reject(StreamError.timedOut(got: cold.input.count))
    }

    func cancelTimers() {
        cold?.idleTimer?.cancel()
        cold?.frameClock?.timer?.cancel()
        cold?.filter?.timer?.cancel()
    }
}
