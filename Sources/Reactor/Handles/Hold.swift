import Synchronization

extension EventLoop {
    /// Keeps the loop alive until the returned hold is cancelled or released.
    ///
    /// ```swift
    /// let hold = loop.hold()
    /// library.start { result in                      // on a thread of the library
    ///     resolver.fulfill(result)
    ///     hold.cancel()
    /// }
    /// try loop.run()                                 // does not return before
    /// ```
    ///
    /// Take a hold for work whose result comes from another thread or an async task. `keepAliveReasons` reports the
    /// call's source line.
    public func hold(file: StaticString = #fileID, line: UInt = #line) -> Hold {
        hold(at: CallSite(file, line))
    }

    /// `hold()` for work started at `callSite`.
    package func hold(at callSite: CallSite) -> Hold {
        assertOwner()
        return Hold(self, keepAlive.holds.add(callSite))
    }

    /// A handle that keeps a loop alive; see `EventLoop.hold()` and `LoopHandle`.
    ///
    /// Any thread may end it, by `cancel()` or by releasing the last reference.
    public final class Hold: LoopHandle, Sendable {
        // Sound: other threads touch only the loop's mailbox and owner, which any thread may use. `performCleanup`
        // changes the list of holds on the loop's thread.
        nonisolated(unsafe) private let loop: EventLoop
        // Not the hold's address, which another hold may have before the loop learns of this one's end.
        private let id: Int
        private let isCancelled = Atomic(false)

        fileprivate init(_ loop: EventLoop, _ id: Int) {
            self.loop = loop
            self.id = id
        }

        deinit { cancel() }

        /// Ends this hold: at once on the loop's thread, from other threads by a job of the loop.
        /// - Returns: true unless it was cancelled before.
        @discardableResult
        public func cancel() -> Bool {
            if isCancelled.exchange(true, ordering: .relaxed) { return false }
            loop.performCleanup { [loop, id] in if !loop.hasEnded { _ = loop.keepAlive.holds.remove(id) } }
            return true
        }

        /// True until the hold is cancelled or its loop ends.
        public var isActive: Bool { !isCancelled.load(ordering: .relaxed) && !loop.shared.life.hasReached(.over) }
    }
}
