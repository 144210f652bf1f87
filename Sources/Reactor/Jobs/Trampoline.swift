/// Runs jobs at once, but one after the other. A job that arrives while another runs is run after it, not inside it, so
/// that a chain of any length needs constant stack.
struct Trampoline: ~Copyable {
    private var jobs = JobQueue()
    private(set) var isRunning = false

    /// Adds a job, with the caller's reference. Returns true if no job is running, so that the caller must run the jobs
    /// with `popFirst`.
    mutating func begin(_ job: Unmanaged<Job>) -> Bool {
        jobs.append(job)
        defer { isRunning = true }
        return !isRunning
    }

    /// Returns the next job, with its reference. After the last job it returns `nil`, and the caller has finished.
    mutating func popFirst() -> Unmanaged<Job>? {
        let job = jobs.popFirst()
        if job == nil { isRunning = false }
        return job
    }

    /// For a turn of the loop inside a job: jobs that arrive in the turn run in it. Call `resume` when the turn is
    /// over.
    mutating func resume() { isRunning = true }
}
