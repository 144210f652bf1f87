extension EventLoop {
    /// Calls `body` whenever this loop is about to wait: nothing is left to do, and the loop polls the kernel next. Use
    /// it to flush buffered data, or to measure how long the loop was busy.
    ///
    /// The hook is not called in a turn that does not wait, because of `turn(.poll)`, ready jobs, or a due timer. Hooks
    /// are called in the order in which they were added. A hook may do anything that a job may. If it makes something
    /// ready, or stops the loop, the loop does not wait. If it removes the last reason to stay alive, `run()` ends. A
    /// hook does not keep the loop alive. Turns that a hook runs call no hooks, and if they have handled anything, the
    /// loop does not wait before it has looked again. (Only polling shows whether something has already happened, and
    /// then the wait ends at once.)
    ///
    /// With a virtual clock, a jump to the next deadline is a wait.
    @discardableResult
    public func beforeWaiting(
        _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Watch { addHook(body, CallSite(file, line), .beforeWaiting) }

    /// Calls `body` whenever this loop has waited, before it handles timers, events and jobs. See `beforeWaiting(_:)`.
    @discardableResult
    public func afterWaiting(
        _ body: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) -> Watch { addHook(body, CallSite(file, line), .afterWaiting) }

    private func addHook(_ body: @escaping () -> Void, _ callSite: CallSite, _ moment: LoopHooks.Moment) -> Watch {
        assertOwner()
        return Watch(.hook(self, id: hasReleasedAll ? 0 : hooks.add(body, callSite, moment)))
    }
}
