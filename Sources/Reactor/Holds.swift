extension EventLoop {
    /// Keeps the loop alive until it is released, for work that comes back from elsewhere: another thread, an
    /// async task. `whatKeepsItAlive` names the line of the call.
    public func hold(file: StaticString = #fileID, line: UInt = #line) -> Hold {
        assertOwner()
        let hold = Hold(self)
        holds[ObjectIdentifier(hold)] = Origin(file, line)
        return hold
    }

    /// A reason to stay alive; see `EventLoop.hold()`. Ends with `release()` or when the last reference to it goes.
    public final class Hold {
        private var loop: EventLoop?

        fileprivate init(_ loop: EventLoop) { self.loop = loop }

        deinit { release() }

        /// Lets the loop end as far as this hold is concerned. Again: nothing happens.
        public func release() {
            loop?.holds[ObjectIdentifier(self)] = nil
            loop = nil
        }
    }
}
