/// Jobs that are done at once, but one after the other: one that comes while another runs is done after it and not
/// inside it, so that no depth of them needs depth of stack.
struct Trampoline: ~Copyable {
    private var jobs = ReadyQueue()
    private(set) var isRunning = false

    /// Adds a job, with the caller's reference. True: nobody is at it, so the caller must go through `popFirst`.
    mutating func begin(_ job: Unmanaged<Job>) -> Bool {
        jobs.append(job)
        defer { isRunning = true }
        return !isRunning
    }

    /// The next job, with its reference; after the last, `nil`, and the caller is done.
    mutating func popFirst() -> Unmanaged<Job>? {
        let job = jobs.popFirst()
        if job == nil { isRunning = false }
        return job
    }

    /// For a turn of the loop inside a job: what comes in it is done in it. `resume` when the turn is over.
    mutating func resume() { isRunning = true }
}
