import Glibc

extension EventLoop {
    /// Calls `handler` on this loop after the process has received `signal`.
    ///
    /// Signals in quick succession may be reported once, as the kernel itself merges them. Several watches, also on
    /// several loops, may watch one signal. The first watch replaces the process's action, by sigaction(2) with
    /// SA_RESTART; the end of the last watch restores the previous action. The watch keeps the loop alive unless it is
    /// unreferenced.
    ///
    /// - Parameters:
    ///   - signal: the number of the signal.
    ///   - handler: called on the loop's thread, as a job.
    /// - Returns: the watch, which `cancel()` ends.
    /// - Throws: `SystemError` of `sigaction`: `EINVAL` for an invalid number, and for SIGKILL and SIGSTOP, which
    ///   cannot be caught; `ENOSPC` if 64 other loops of the process watch signals or wait for children without pidfds.
    ///   Also errors of the calls that open the loop's own descriptors.
    public func onSignal(
        _ signal: CInt, _ handler: @escaping () -> Void, file: StaticString = #fileID, line: UInt = #line
    ) throws(SystemError) -> SignalWatch {
        guard (1...64).contains(signal) else { throw SystemError(.sigaction, EINVAL, detail: "signal \(signal)") }
        if signals.slot == nil {
            try openPoller()
            try signals.open(&poller, kernel)
        }
        return SignalWatch(loop: self, id: try signals.add(signal, handler, CallSite(file, line)))
    }

    /// A handle to a signal watch; see `LoopHandle`.
    public struct SignalWatch: LoopHandle {
        fileprivate let loop: EventLoop
        fileprivate let id: Int

        /// Ends the watch and releases its handler. The end of the last watch of a signal restores the previous action
        /// of the process. A signal that is already on its way is not reported any more.
        /// - Returns: whether the watch was active.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        @discardableResult
        public func cancel() -> Bool {
            loop.requireOwner()
            guard let removed = loop.signals.remove(id) else { return false }
            removed.end()
            return true
        }

        /// Whether the watch has not been cancelled.
        public var isActive: Bool {
            loop.requireOwner()
            return loop.signals.contains(id)
        }

        /// Lets the loop end even though this watch is active.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func unref() {
            loop.requireOwner()
            loop.signals.setReferenced(id, false)
        }

        /// Makes the watch keep the loop alive again.
        @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
        public func ref() {
            loop.requireOwner()
            loop.signals.setReferenced(id, true)
        }
    }
}
