import Glibc
import Reactor

extension Connection {
    /// Limits the reads of frames: `readLine`, `read(exactly:)`, `read(until:)`, `readFrame`, `forEachLine`,
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
    /// When a limit is reached, the read that waits is rejected with `StreamError.timedOut(got:)`; `got` is 0 if no
    /// byte of a frame has arrived. The connection stays usable for writes and reads, and the next read gets the bytes
    /// of the incomplete frame. The time during which a handler runs does not count, since no read waits; for bytes
    /// that arrive during it, the time of their frame begins with the next read.
    ///
    /// A read that continues a request, such as the read of a body after its header, reads a frame of its own: `idle`
    /// applies until its first byte. Set a shorter `idle` for such a read if needed.
    ///
    /// A read that waits costs one reading of the clock. All reads share one timer, which is moved at most once per
    /// limit.
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

    /// Computes the deadline of a read that begins to wait, or that has received a part of its frame.
    @inline(never)
    func updateFrameDeadline() {
        guard let cold, var clock = cold.frameClock else { return }
        let now = loop.now
        let count = cold.input.count
        var start = now
        var limit = clock.limits.idle
        let offset = (cold.filter?.deliveredCount ?? bytesReceived) - count
        if count == 0 {
            clock.frame = nil
            // Bytes that were skipped do not begin the idle time anew: otherwise a peer could stay without any frame.
            let continues = clock.hasSkipped && clock.idle?.offset == offset - clock.skippedCount
            if continues, let idle = clock.idle { start = idle.since } else { clock.isLate = false }
            clock.idle = (offset - clock.skippedCount, start)
            clock.hasSkipped = false
        } else {
            // A frame is identified by its position in the stream: the time of all its waits counts from its first
            // byte.
            if let frame = clock.frame, frame.offset == offset { start = frame.since } else { clock.isLate = false }
            clock.frame = (offset, start)
            limit = clock.limits.frame
        }
        clock.deadline = nil
        if let limit, limit > .zero { clock.deadline = start.advanced(by: limit) }
        cold.frameClock = clock
        armFrameTimer(cold)
    }

    /// Notes that a decoder has skipped `count` of the buffered bytes.
    @usableFromInline @inline(never)
    func noteSkipped(_ count: Int) {
        guard let cold, cold.frameClock != nil else { return }
        cold.frameClock?.skippedCount += count
        cold.frameClock?.hasSkipped = true
    }

    /// Starts the timer. One that fires before the deadline is kept, and is set anew when it fires.
    private func armFrameTimer(_ cold: ColdState) {
        guard let clock = cold.frameClock, let deadline = clock.deadline else { return }
        if let timer = clock.timer {
            if clock.due <= deadline { return }
            timer.cancel()
        }
        cold.frameClock?.due = deadline
        startFrameTimer(cold, at: deadline)
    }

    /// The timer does not keep the loop alive, since it outlives the read. The read does.
    private func startFrameTimer(_ cold: ColdState, at moment: LoopInstant) {
        let timer = loop.schedule(at: moment) { [weak self] in self?.frameTimerFired() }
        timer.unref()
        cold.frameClock?.timer = timer
    }

    private func frameTimerFired() {
        guard let cold, let clock = cold.frameClock else { return }
        cold.frameClock?.timer = nil
        // If no read waits, the next one starts the timer.
        guard lifecycle.isOpen, cold.pendingFrame != nil, let deadline = clock.deadline else { return }
        guard deadline <= loop.now else { return armFrameTimer(cold) }
        // Bytes that have reached the kernel in time are not late: they are read before the limit applies. This is
        // granted once per frame, so that further bytes do not prolong it.
        if !clock.isLate && isReadyInKernel {
            cold.frameClock?.isLate = true
            cold.frameClock?.due = deadline
            startFrameTimer(cold, at: loop.now)
            return
        }
        guard let waiter = reader.take() else { return }
        cold.pendingFrame = nil
        // A read that continues this frame gets the whole time again: otherwise a handler that reads on after each
        // time-out would be called in every turn.
        cold.frameClock?.frame = nil
        updateInterest()
        waiter.promise.reject(StreamError.timedOut(got: cold.input.count))
    }

    func cancelTimers() {
        cold?.idleTimer?.cancel()
        cold?.frameClock?.timer?.cancel()
        cold?.filter?.timer?.cancel()
    }
}
