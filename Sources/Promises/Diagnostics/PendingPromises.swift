import Reactor

extension EventLoop {
    /// The pending promises of the calling thread's loop, in the order of their making: those that were made while
    /// `conf.trace` was on, and those that have a name. Each link of a chain is one, so is a `catch` that waits.
    ///
    /// Looks through the records of the whole process, which other threads wait for.
    @available(*, noasync, message: "an async function has no loop of its own")
    public static var pendingPromises: [Provenance] { TraceRegistry.pending(ofLoop: ofCurrentThread.serial) }

    /// `pendingPromises` as text, a line for each:
    ///
    /// ```text
    /// 2 promises are pending:
    ///   Promise<Int> "login" made at App/Login.swift:12
    ///   Promise<Int> made at App/Login.swift:12 "login" → map at App/Login.swift:14
    /// ```
    @available(*, noasync, message: "an async function has no loop of its own")
    public static var pendingPromisesReport: String {
        let promises = pendingPromises
        let head =
            switch promises.count {
            case 0: "no promise is pending"
            case 1: "1 promise is pending:"
            default: "\(promises.count) promises are pending:"
            }
        return ([head] + promises.map { "  \($0.phrase)" }).joined(separator: "\n")
    }
}
