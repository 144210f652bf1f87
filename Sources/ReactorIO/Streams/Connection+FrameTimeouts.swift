import Promises
import Reactor

extension Connection {
    /// The time limits for reads of frames: `readLine`, `read(exactly:)`, `read(until:)`, `readFrame`, `forEachLine`,
    /// `forEachFrame`. `nil`, the default, means none.
    ///
    /// ```swift
    /// connection.frameTimeouts = FrameTimeouts(idle: .seconds(60), frame: .seconds(10))
    /// connection.forEachLine { line in connection.write(answer(to: line)) }.recover { error -> Promise<Void> in
    ///     guard case StreamError.timedOut(let got) = error else { throw error }
    ///     return got == 0 ? .value : connection.write("half a line\n")
    /// }
    /// ```
    ///
    /// At a limit, the pending read is rejected with `StreamError.timedOut(got:)`, where `got` is 0 if no byte of the
    /// frame has arrived. The connection stays usable, and the next read gets the bytes of the incomplete frame. Limits
    /// that are set while a read waits count from that moment, but a frame's time counts from its first byte.
    public var frameTimeouts: FrameTimeouts? {
        get { cold?.frameClock?.limits }
        set {
            // A server without limits sets `nil` on each connection, which must cost nothing.
            if newValue == nil && frameTimeouts == nil { return }
            loop.assertOwner()
            let cold = ensuredColdState
            cold.frameClock?.cancelTimer(on: loop)
            cold.frameClock = newValue.map { FrameClock($0, of: self, continuing: cold.frameClock) }
            if reader.isWaiting && reader.form.isOfFrames { cold.frameClock?.update(reader.form, of: self) }
        }
    }

    /// Begins a message, whose time `frameTimeouts.message` limits, at the next unconsumed byte.
    ///
    /// In `forEachFrame`, `forEachLine` and `lines` each frame begins a message, which includes all reads in the body.
    /// Other handlers call this before the first read of each request, because otherwise each read would be a separate
    /// message. Has no effect without `frameTimeouts`.
    public func beginMessage() {
        loop.assertOwner()
        cold?.frameClock?.beginMessage(of: self)
    }
}

extension Connection {
    /// Begins a message for the next frame of a loop, unless the loop runs in the body of another. Each attempt to
    /// decode calls this, but a message begins once at each position.
    /// - Parameter unbuffered: see `position`.
    /// - Returns: the error of the read; `nil` if it can begin.
    @usableFromInline
    func beginFrame(unbuffered: Int = 0) -> SystemError? {
        if let clock = cold?.frameClock, reader.loops < 2 { clock.beginMessage(of: self, unbuffered: unbuffered) }
        return reader.isLastCall ? refusalToContinue : refuseRead()
    }

    /// Called before the bytes are dropped.
    @usableFromInline @inline(never)
    func noteSkipped(_ count: Int, of unconsumed: Int) {
        cold?.frameClock?.skip(count, at: deliveredByteCount - unconsumed)
    }
}
