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
    /// applies until its first byte, and `message` to all reads of the request together. When `message` is reached, `got`
    /// is the number of bytes of the whole message.
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
            let (frame, message) = (cold.frameClock?.frame, cold.frameClock?.message)
            cold.frameClock = newValue.map(FrameClock.init)
            cold.frameClock?.frame = frame
            cold.frameClock?.message = message
            if newValue != nil && cold.pendingFrame != nil { updateFrameDeadline() }
        }
    }

    /// Begins a message at the next byte that no read has consumed: what `frameTimeouts.message` limits.
    ///
    /// In `forEachFrame`, `forEachLine` and `lines` each frame begins a message, to which the reads of the body belong,
    /// also those of a `forEachFrame` or `forEachLine` that the body of another begins. So only other handlers call this,
    /// before the first read of each request. Without it each of their reads is a message of its own. Without
    /// `frameTimeouts` it has no effect.
    public func beginMessage() {
        loop.assertOwner()
        guard let cold, cold.frameClock != nil else { return }
        let offset = inputCount(cold) - cold.input.count
        if cold.frameClock?.message?.offset != offset { cold.frameClock?.message = .init(offset: offset) }
    }

    /// The reads that follow a loop over frames are messages of their own.
    func endMessages() { cold?.frameClock?.message = nil }

    /// As `refusalToRead`, of a loop that looks for its next frame: this begins a message, unless the loop is in the body
    /// of another.
    @usableFromInline
    var refusalToBeginFrame: SystemError? {
        if let cold, cold.frameClock != nil, cold.frameLoops < 2 { beginMessage() }
        return refusalToRead
    }

    /// A `forEachFrame` or `forEachLine` begins.
    @usableFromInline
    func beginFrameLoop() { ensuredColdState.frameLoops += 1 }

    @usableFromInline
    func endFrameLoop() {
        guard let cold else { return }
        cold.frameLoops -= 1
        if cold.frameLoops == 0 { endMessages() }
    }

    /// How many bytes were received so far: behind the filter, if there is one.
    private func inputCount(_ cold: ColdState) -> Int { cold.filter?.deliveredCount ?? bytesReceived }

    /// A read of a frame no longer waits.
    @inline(never)
    func endFrameWait() { if cold?.frameClock?.waitSince != nil { cold?.frameClock?.endWait(at: loop.now) } }

    /// Computes the deadline of a read that begins to wait, or that has received a part of its frame.
    @inline(never)
    func updateFrameDeadline() {
        guard let cold, var clock = cold.frameClock else { return }
        let now = loop.now
        let count = cold.input.count
        var start = now
        var limit = clock.limits.idle
        let received = inputCount(cold)
        let offset = received - count
        clock.endWait(at: now)
        if count == 0 {
            // A loop waits for its next frame, and not the one in its body.
            if cold.pendingFrame?.decode == nil && cold.frameLoops < 2 { clock.message = .init(offset: offset) }
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
            limit = clock.limits.grown(clock.limits.frame, by: count)
            if clock.message == nil, let own = clock.limits.grown(clock.limits.message, by: count) {
                limit = min(limit ?? own, own)
            }
        }
        clock.deadline = nil
        if let limit, limit > .zero { clock.deadline = start.advanced(by: limit) }
        limitMessage(&clock, received, now)
        cold.frameClock = clock
        armFrameTimer(cold)
    }

    /// Applies the limit of a message that has begun.
    private func limitMessage(_ clock: inout FrameClock, _ received: Int, _ now: LoopInstant) {
        clock.limitsMessage = false
        guard let message = clock.message, received > message.offset,
            let limit = clock.limits.grown(clock.limits.message, by: received - message.offset)
        else { return }
        clock.waitSince = now
        let deadline = now.advanced(by: limit - message.used)
        if let other = clock.deadline, other <= deadline { return }
        clock.deadline = deadline
        clock.limitsMessage = true
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
        // granted once per frame, or per message, so that further bytes do not prolong it.
        if !(clock.limitsMessage ? clock.message?.isLate ?? true : clock.isLate) && isReadyInKernel {
            if clock.limitsMessage { cold.frameClock?.message?.isLate = true } else { cold.frameClock?.isLate = true }
            cold.frameClock?.due = deadline
            startFrameTimer(cold, at: loop.now)
            return
        }
        guard let waiter = reader.take() else { return }
        cold.pendingFrame = nil
        // A read that continues this frame gets the whole time again: otherwise a handler that reads on after each
        // time-out would be called in every turn.
        cold.frameClock?.frame = nil
        cold.frameClock?.waitSince = nil
        cold.frameClock?.message?.used = .zero
        let got = clock.limitsMessage ? inputCount(cold) - (clock.message?.offset ?? 0) : cold.input.count
        updateInterest()
        waiter.promise.reject(StreamError.timedOut(got: got))
    }

    func cancelTimers() {
        cold?.idleTimer?.cancel()
        cold?.frameClock?.timer?.cancel()
        cold?.filter?.timer?.cancel()
    }
}
