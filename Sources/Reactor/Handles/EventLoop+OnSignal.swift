import ReactorLibc

extension EventLoop {
    /// Calls `handler` on this loop after the process has received `signal`.
    ///
    /// ```swift
    /// let reload = try EventLoop.current.onSignal(SIGHUP) { settings.reload() }
    /// ```
    ///
    /// Signals in quick succession may be reported once, because the kernel merges them. Several watches, on any loops,
    /// may watch one signal. The first replaces the process's action, by sigaction(2) with SA_RESTART and SA_ONSTACK;
    /// the end of the last restores it. The watch keeps the loop alive unless unreferenced.
    ///
    /// A signal that arrived before its watch ended, without a handler having begun since, is not lost. It goes to the
    /// signal's remaining watches, or else is sent to the process again for the restored action. That may end the
    /// process, as if the signal had come a moment later.
    ///
    /// - Throws: `SystemError` of `sigaction`:
    ///   - `EINVAL` for an invalid number, and for SIGKILL and SIGSTOP, which cannot be caught;
    ///   - `EINVAL` for SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS and SIGABRT, faults that the thread would
    ///     repeat forever if they were only noted;
    ///   - `ENOSPC` if 64 other loops of the process watch signals or wait for children without pidfds.
    ///
    ///   Also errors of opening the loop's own descriptors.
    public func onSignal(
        _ signal: CInt, _ handler: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) throws(SystemError) -> Watch {
        try watch(SignalHandler(signal: signal, handles: true, body: handler, callSite: CallSite(file, line)))
    }

    /// Calls `keep` after the process has received `signal`, which stays unhandled until `noteSignalHandled`.
    package func keepSignal(
        _ signal: CInt, _ keep: @escaping () -> Void, _ file: StaticString, _ line: UInt
    ) throws(SystemError) -> Watch {
        try watch(SignalHandler(signal: signal, handles: false, body: keep, callSite: CallSite(file, line)))
    }

    /// Marks every arrival of `signal` until now as handled, so the end of its watch does not pass it on.
    package func noteSignalHandled(_ signal: CInt) { SignalRegistry.noteHandled(signal) }

    private func watch(_ handler: SignalHandler) throws(SystemError) -> Watch {
        let signal = handler.signal
        if let reason = Self.refusal(of: signal) {
            throw SystemError(.sigaction, EINVAL, detail: "signal \(signal)\(reason)")
        }
        // Refuses an ending loop, whose slot may still be open, since nothing would restore the action.
        try openDescriptors()
        if signals.slot == nil { try signals.open(&poller, kernel) }
        return Watch(.signal(self, id: try signals.add(handler)))
    }

    private static func refusal(of signal: CInt) -> String? {
        if !(1...64).contains(signal) { return ": there is no such signal" }
        if [SIGKILL, SIGSTOP].contains(signal) { return " cannot be caught" }
        guard LibraryThread.faults.contains(signal) else { return nil }
        return " reports a fault, after which its thread cannot go on"
    }
}
