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

    package func hold(at callSite: CallSite) -> Hold {
        assertOwner()
        return Hold(self, keepAlive.holds.add(callSite))
    }

    /// A handle that keeps a loop alive; see `EventLoop.hold()` and `LoopHandle`.
    ///
    /// Any thread may end the hold, by `cancel()` or by releasing the last reference.
    public final class Hold: LoopHandle, Sendable {
        // Sound: other threads touch only the loop's mailbox and owner, which any thread may use. The list of holds is
        // changed by `performCleanup`, on the loop's thread.
        nonisolated(unsafe) private let loop: EventLoop
        // Not the hold's address, which a new hold may reuse before the loop learns that this one has ended.
        private let id: Int
        private let isCancelled = Atomic(false)

        fileprivate init(_ loop: EventLoop, _ id: Int) {
            self.loop = loop
            self.id = id
        }

        deinit { cancel() }

        /// Ends this hold. On the loop's thread it ends at once; other threads submit a job to the loop.
        /// - Returns: true unless the hold was already cancelled.
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
