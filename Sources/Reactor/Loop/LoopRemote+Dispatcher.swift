extension LoopRemote: Dispatcher {
    /// Runs `job` on the loop, as `submit` does; always as a job of its own, even when called on the loop's thread.
    /// - Parameter job: called at most once, on the loop's thread.
    /// - Throws: `DispatchError.loopEnded`. A loop that ends with the job still in its queue releases the job.
    public func dispatch(_ job: @escaping @Sendable () -> Void) throws(DispatchError) {
        guard submit(job) else { throw .loopEnded }
    }
}
