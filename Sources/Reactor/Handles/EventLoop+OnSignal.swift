import ReactorLibc

extension EventLoop {
    /// Calls `handler` on this loop after the process has received `signal`.
    ///
    /// ```swift
    /// let reload = try EventLoop.current.onSignal(SIGHUP) { settings.reload() }
    /// ```
    ///
    /// Signals in quick succession may be reported once, because the kernel merges them. A signal may have several
    /// watches, on any loops. The first watch replaces the process's action, with sigaction(2), SA_RESTART and
    /// SA_ONSTACK. The end of the last watch restores it. The watch keeps the loop alive unless unreferenced.
    ///
    /// If a watch ends before a handler has begun for a signal that has arrived, the signal is not lost. It goes to the
    /// signal's remaining watches. If there are none, the process receives it again for the restored action, which may
    /// end the process, as if the signal had come a moment later.
    ///
    /// - Throws: `SystemError` from `sigaction`:
    ///   - `EINVAL` for an invalid number, and for SIGKILL and SIGSTOP, which cannot be caught;
    ///   - `EINVAL` for SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS and SIGABRT: a handler that only notes such a
    ///     fault lets the thread repeat it forever;
    ///   - `ENOSPC` if 64 other loops in the process watch signals or wait for children without pidfds.
    ///
    ///   Also any error from opening the loop's own descriptors.
    public func onSignal(
        _ signal: CInt, _ handler: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) throws(SystemError) -> Watch {
        try watch(SignalHandler(signal: signal, handles: true, body: handler, callSite: CallSite(file, line)))
    }

    /// Calls `keep` after the process has received `signal`. The signal stays unhandled until `noteSignalHandled`.
    package func keepSignal(
        _ signal: CInt, _ keep: @escaping () -> Void, _ file: StaticString, _ line: UInt
    ) throws(SystemError) -> Watch {
        try watch(SignalHandler(signal: signal, handles: false, body: keep, callSite: CallSite(file, line)))
    }

    /// Marks every arrival of `signal` until now as handled, so the end of its watch does not forward the signal.
    package func noteSignalHandled(_ signal: CInt) { SignalRegistry.noteHandled(signal) }

    private func watch(_ handler: SignalHandler) throws(SystemError) -> Watch {
        let signal = handler.signal
        if let reason = Self.refusal(of: signal) {
            throw SystemError(.sigaction, EINVAL, detail: "signal \(signal)\(reason)")
        }
        // Refuses an ending loop, even if its slot is still open, since nothing would restore the action.
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
