import Reactor

extension EventLoop {
    /// The pending promises on this thread's loop that have a name or were traced, in order of creation.
    ///
    /// ```swift
    /// for promise in EventLoop.pendingPromises { print(promise) }     // the Promise<Int> "login" made at App/Login.swift:12
    /// ```
    ///
    /// Lists each promise in a chain, and each waiting `catch`. Searches the records of the whole process, and
    /// meanwhile blocks other threads that need them.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static var pendingPromises: [Provenance] { TraceRegistry.pending(ofLoop: ofCurrentThread.serial) }
}
