import ReactorLibc

extension EventLoop {
    /// Calls `handler` on this loop after the process has received `signal`.
    ///
    /// ```swift
    /// let reload = try EventLoop.current.onSignal(SIGHUP) { settings.reload() }
    /// ```
    ///
    /// Signals in quick succession may be reported once, as the kernel itself merges them. Several watches, also on
    /// several loops, may watch one signal. The first watch replaces the process's action, by sigaction(2) with
    /// SA_RESTART and SA_ONSTACK; the end of the last watch restores the previous action. The watch keeps the loop alive
    /// unless it is unreferenced.
    ///
    /// A signal that has arrived when its watch ends, and for which no handler has begun since, is not lost: it goes to
    /// the remaining watches of that signal, or else the process is sent it again, for the restored action. That may end
    /// the process, as if the signal had come a moment later.
    ///
    /// - Throws: `SystemError` of `sigaction`:
    ///   - `EINVAL` for an invalid number, and for SIGKILL and SIGSTOP, which cannot be caught;
    ///   - `EINVAL` for SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS and SIGABRT: they report a fault,
    ///     which the thread would repeat for ever if the signal were only noted;
    ///   - `ENOSPC` if 64 other loops of the process watch signals or wait for children without pidfds.
    ///
    ///   Also errors of the calls that open the loop's own descriptors.
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

    /// Notes that `signal` is handled, as often as it has arrived until now: the end of its watch does not pass it on.
    package func noteSignalHandled(_ signal: CInt) { SignalRegistry.noteHandled(signal) }

    private func watch(_ handler: SignalHandler) throws(SystemError) -> Watch {
        let signal = handler.signal
        if let reason = Self.refusal(of: signal) {
            throw SystemError(.sigaction, EINVAL, detail: "signal \(signal)\(reason)")
        }
        // It also refuses a loop that is ending, whose slot may still be open: nothing would restore the action.
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
