extension EventLoop {
    /// Keeps the loop alive until it is released, for work that comes back from elsewhere: another thread, an
    /// async task. `whatKeepsItAlive` names the line of the call.
    public func hold(file: StaticString = #fileID, line: UInt = #line) -> Hold {
        assertOwner()
        lastHold += 1
        holds[lastHold] = Origin(file, line)
        return Hold(self, lastHold)
    }

    /// A reason to stay alive; see `EventLoop.hold()`. Ends with `release()`, on the loop's thread, or when the last reference to
    /// it goes, on any.
    public final class Hold {
        private var loop: EventLoop?
        // Not its address, which another may have by the time that the end of this one is known to the loop.
        private let id: Int

        fileprivate init(_ loop: EventLoop, _ id: Int) {
            self.loop = loop
            self.id = id
        }

        deinit {
            loop?.putInOrder { [loop, id] in if let loop, !loop.hasEnded { loop.holds[id] = nil } }
        }

        /// Lets the loop end as far as this hold is concerned. Again: nothing happens.
        public func release() {
            loop?.assertOwner()
            loop?.holds[id] = nil
            loop = nil
        }
    }
}
