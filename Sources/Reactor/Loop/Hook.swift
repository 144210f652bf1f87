extension EventLoop {
    /// Calls `body` whenever this loop is about to wait for something to happen: there is nothing to do, and it asks the
    /// kernel next. The moment to flush what has been gathered, or to note how long the loop was busy.
    ///
    /// Not called in a turn that does not wait, as of `turn(.poll)`, or because jobs are ready or a timer is due. Several
    /// hooks are called in the order in which they were added. A hook may do whatever a job may: if it makes something
    /// ready, or stops the loop, the loop does not wait; if it takes away the last reason to stay alive, `run()` ends. It does
    /// not keep the loop alive itself. In turns that a hook makes no hooks are called. (That something has already
    /// happened the loop only learns by asking, and then the wait is over at once.)
    ///
    /// With a virtual clock, a jump to the next deadline is a wait.
    @discardableResult
    public func beforeWaiting(
        _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Hook {
        assertOwner()
        return Hook(self, isClosed ? 0 : hooks.add(body, CallSite(file, line), to: .before))
    }

    /// Calls `body` whenever this loop has waited, before it looks what has happened: before timers, events and jobs. See
    /// `beforeWaiting(_:)`.
    @discardableResult
    public func afterWaiting(
        _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Hook {
        assertOwner()
        return Hook(self, isClosed ? 0 : hooks.add(body, CallSite(file, line), to: .after))
    }

    /// A hook that has been added. Letting go of it does not end it; `cancel()` does.
    public struct Hook {
        private let loop: EventLoop
        private let id: Int

        fileprivate init(_ loop: EventLoop, _ id: Int) {
            self.loop = loop
            self.id = id
        }

        /// Ends the hook and releases its closure. Again: nothing happens.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func cancel() {
            loop.requireOwner()
            // Bound, so that the closure goes after the list is whole again.
            let removed = loop.hooks.remove(id)
            withExtendedLifetime(removed) {}
        }
    }

    /// Answers whether the loop may still wait.
    func callHooksBeforeWaiting() -> Bool {
        let wasAlive = isAlive
        // A stop that was requested before is for a `run()` around this turn, or for the next one: a `hang`, or a turn that is
        // called directly, waits all the same, hooks or not.
        let wasStopped = lifecycle.stopRequested
        callHooks(hooks.before)
        // A hook that has taken away the last reason to stay alive would otherwise be waited after for ever. (Who turns a
        // loop by hand that is not alive at all wants it to wait for others.)
        return queues.ready.isEmpty && shared.waker.mailbox.isEmpty && !poller.hasUndelivered
            && (!lifecycle.stopRequested || wasStopped)
            && (isAlive || !wasAlive)
    }

    func callHooksAfterWaiting() { callHooks(hooks.after) }

    private func callHooks(_ list: [LoopHooks.Entry]) {
        guard !hooks.areBeingCalled else { return }
        hooks.areBeingCalled = true
        defer { hooks.areBeingCalled = false }
        if meter.isTiming { beginTiming() }
        // One before it may have cancelled it.
        for hook in list where hooks.contains(hook.id) { call(.hook, hook.origin) { hook.body() } }
    }
}
