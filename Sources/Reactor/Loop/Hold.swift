import Synchronization

extension EventLoop {
    /// Keeps the loop alive until it is released, for work that comes back from elsewhere: another thread, an
    /// async task. `keepAliveReasons` names the line of the call.
    public func hold(file: StaticString = #fileID, line: UInt = #line) -> Hold {
        assertOwner()
        lastHold += 1
        holds[lastHold] = CallSite(file, line)
        return Hold(self, lastHold)
    }

    /// A reason to stay alive; see `EventLoop.hold()`. Ends with `release()`, or when the last reference to it is released;
    /// either may happen on any thread.
    public final class Hold: Sendable {
        // Sound: outside the loop's thread only its mailbox and its owner, both made for any thread, are touched; the
        // list of holds is changed in `performCleanup`, on the loop's thread.
        nonisolated(unsafe) private let loop: EventLoop
        // Not its address, which another may have by the time that the end of this one is known to the loop.
        private let id: Int
        private let isReleased = Atomic(false)

        fileprivate init(_ loop: EventLoop, _ id: Int) {
            self.loop = loop
            self.id = id
        }

        deinit { release() }

        /// Lets the loop end as far as this hold is concerned: at once on the loop's thread, and as a job of the loop
        /// when called on another one. Again: nothing happens.
        public func release() {
            if isReleased.exchange(true, ordering: .relaxed) { return }
            loop.performCleanup { [loop, id] in if !loop.hasEnded { loop.holds[id] = nil } }
        }
    }
}
