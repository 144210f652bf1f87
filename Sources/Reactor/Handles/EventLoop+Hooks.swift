extension EventLoop {
    /// Calls `body` whenever this loop is about to wait in the kernel. Use it to flush buffered data, or to measure
    /// busy time.
    ///
    /// A turn that does not wait, because of `turn(.poll)`, ready jobs or a due timer, calls no hooks. Hooks run in the
    /// order in which they were added, and may do anything that a job may. If a hook makes something ready or stops the
    /// loop, the loop does not wait. If a hook removes the last reason to stay alive, `run()` ends. A hook does not
    /// keep the loop alive. Turns inside a hook call no hooks. If such a turn handles anything, the loop checks again
    /// before it waits. (Only polling shows events. If there are any, the wait ends at once.)
    ///
    /// A virtual clock's jump to the next deadline counts as a wait.
    @discardableResult
    public func beforeWaiting(
        _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Watch { addHook(body, CallSite(file, line), .beforeWaiting) }

    /// Calls `body` after each wait of this loop, before timers, events and jobs are handled. See `beforeWaiting(_:)`.
    @discardableResult
    public func afterWaiting(
        _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Watch { addHook(body, CallSite(file, line), .afterWaiting) }

    private func addHook(_ body: @escaping () -> Void, _ callSite: CallSite, _ moment: LoopHooks.Moment) -> Watch {
        assertOwner()
        return Watch(.hook(self, id: hasReleasedAll ? 0 : hooks.add(body, callSite, moment)))
    }
}
