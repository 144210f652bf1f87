import Reactor

extension EventLoop {
    /// The pending promises of this thread's loop, in order of creation, that have a name or were traced.
    ///
    /// ```swift
    /// for promise in EventLoop.pendingPromises { print(promise) }     // the Promise<Int> "login" made at App/Login.swift:12
    /// ```
    ///
    /// Lists each promise of a chain, and each waiting `catch`. Searches the records of the whole process, and blocks
    /// other threads that need them.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static var pendingPromises: [Provenance] { TraceRegistry.pending(ofLoop: ofCurrentThread.serial) }
}
