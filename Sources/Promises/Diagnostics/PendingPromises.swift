import Reactor

extension EventLoop {
    /// The pending promises of this thread's loop, in order of creation: those made while `conf.trace` was on, and
    /// those with a name.
    ///
    /// ```swift
    /// for promise in EventLoop.pendingPromises { print(promise) }     // the Promise<Int> "login" made at App/Login.swift:12
    /// ```
    ///
    /// Each promise of a chain is listed separately, and so is a waiting `catch`. This searches the records of the
    /// whole process; other threads that need the records wait meanwhile.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static var pendingPromises: [Provenance] { TraceRegistry.pending(ofLoop: ofCurrentThread.serial) }
}
