extension LoopRemote: Dispatcher {
    /// Runs `job` on the loop like `submit`; always as a separate job, even when called on the loop's thread.
    /// - Throws: `DispatchError.loopEnded`. A loop that ends with the job still queued releases it.
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws(DispatchError) {
        guard submit(job) else { throw .loopEnded }
    }
}
