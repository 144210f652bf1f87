import Libc

extension EventLoop {
    /// Calls `handler` on this loop after the process has received `signal`.
    ///
    /// ```swift
    /// let reload = try EventLoop.current.onSignal(SIGHUP) { settings.reload() }
    /// ```
    ///
    /// Signals in quick succession may be reported once, as the kernel itself merges them. Several watches, also on
    /// several loops, may watch one signal. The first watch replaces the process's action, by sigaction(2) with
    /// SA_RESTART; the end of the last watch restores the previous action. The watch keeps the loop alive unless it is
    /// unreferenced.
    ///
    /// - Throws: `SystemError` of `sigaction`: `EINVAL` for an invalid number, and for SIGKILL and SIGSTOP, which
    ///   cannot be caught; `ENOSPC` if 64 other loops of the process watch signals or wait for children without pidfds.
    ///   Also errors of the calls that open the loop's own descriptors.
    public func onSignal(
        _ signal: CInt, _ handler: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) throws(SystemError) -> Watch {
        guard (1...64).contains(signal) else { throw SystemError(.sigaction, EINVAL, detail: "signal \(signal)") }
        // It also refuses a loop that is ending, whose slot may still be open: nothing would restore the action.
        try openDescriptors()
        if signals.slot == nil { try signals.open(&poller, kernel) }
        return Watch(.signal(self, id: try signals.add(signal, handler, CallSite(file, line))))
    }
}
