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
    /// of the incomplete frame. `FrameTimeouts` says what counts.
    public var frameTimeouts: FrameTimeouts? {
        get { FrameReader.existing(of: self)?.limits }
        set {
            // A server without limits sets nil on each connection; that must cost nothing.
            if newValue == nil && frameTimeouts == nil { return }
            loop.assertOwner()
            FrameReader.of(self).limits = newValue
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
        FrameReader.existing(of: self)?.beginMessage()
    }
}
