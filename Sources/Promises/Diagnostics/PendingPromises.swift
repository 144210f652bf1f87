import Reactor

extension EventLoop {
    /// The pending promises of this thread's loop, in the order of their creation: those made while `conf.trace` was
    /// on, and those with a name.
    ///
    /// Each promise of a chain is listed separately, and so is a waiting `catch`. This searches the records of the
    /// whole process; other threads that need the records wait meanwhile.
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
    public static var pendingPromises: [Provenance] { TraceRegistry.pending(ofLoop: ofCurrentThread.serial) }

    /// `pendingPromises` as text, one promise per line.
    ///
    /// ```text
    /// 2 promises are pending:
    ///   Promise<Int> "login" made at App/Login.swift:12
    ///   Promise<Int> made at App/Login.swift:12 "login" → map at App/Login.swift:14
    /// ```
    @available(*, noasync, message: "call it in a synchronous function on the loop's thread")
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
