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
    /// Take a hold for work whose result comes from elsewhere: from another thread, or from an async task.
    /// `keepAliveReasons` reports the source line of the call.
    public func hold(file: StaticString = #fileID, line: UInt = #line) -> Hold {
        hold(at: CallSite(file, line))
    }

    /// As `hold()`, for work that was started at `callSite`.
    package func hold(at callSite: CallSite) -> Hold {
        assertOwner()
        return Hold(self, keepAlive.holds.add(callSite))
    }

    /// A handle that keeps a loop alive; see `EventLoop.hold()` and `LoopHandle`.
    ///
    /// It ends with `cancel()`, or when the last reference to it is released. Either may happen on any thread.
    public final class Hold: LoopHandle, Sendable {
        // Sound: other threads touch only the loop's mailbox and its owner, which are made for any thread. The list of
        // holds is changed in `performCleanup`, on the loop's thread.
        nonisolated(unsafe) private let loop: EventLoop
        // Not the hold's address: another hold may have that address by the time the loop learns that this one has
        // ended.
        private let id: Int
        private let isCancelled = Atomic(false)

        fileprivate init(_ loop: EventLoop, _ id: Int) {
            self.loop = loop
            self.id = id
        }

        deinit { cancel() }

        /// Ends this hold: at once on the loop's thread, and with a job of the loop on any other thread.
        /// - Returns: whether the hold was not cancelled before.
        @discardableResult
        public func cancel() -> Bool {
            if isCancelled.exchange(true, ordering: .relaxed) { return false }
            loop.performCleanup { [loop, id] in if !loop.hasEnded { _ = loop.keepAlive.holds.remove(id) } }
            return true
        }

        /// `true` until the hold is cancelled or its loop ends.
        public var isActive: Bool { !isCancelled.load(ordering: .relaxed) && !loop.shared.life.hasReached(.over) }
    }
}
