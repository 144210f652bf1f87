/// Runs jobs one after the other. A job that arrives while another runs waits for it to return, so any chain needs
/// constant stack.
struct Trampoline: ~Copyable {
    private var jobs = JobQueue()
    private(set) var isRunning = false

    /// Adds a job with the caller's reference. Returns true if the caller must now run the jobs with `popFirst`, since
    /// none is running.
    mutating func begin(_ job: Unmanaged<Job>) -> Bool {
        jobs.append(job)
        defer { isRunning = true }
        return !isRunning
    }

    /// Removes the next job, with its reference. `nil` ends the caller's work.
    mutating func popFirst() -> Unmanaged<Job>? {
        let job = jobs.popFirst()
        if job == nil { isRunning = false }
        return job
    }

    /// Continues after a turn inside a job. Jobs that arrived in that turn have run in it.
    mutating func resume() { isRunning = true }
}
