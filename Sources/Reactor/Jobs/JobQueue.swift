/// A first-in, first-out queue that owns its jobs.
@usableFromInline
package struct JobQueue: ~Copyable {
    @usableFromInline var head: Unmanaged<Job>?
    @usableFromInline var tail: Unmanaged<Job>?

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { head == nil }

    /// Counted one by one.
    package var count: Int { Job.count(from: head) }

    /// Jobs to report if they never run, without waiting handlers, which are counted elsewhere.
    var countOfReported: Int {
        var count = 0
        var next = head
        while let job = next {
            job._withUnsafeGuaranteedRef {
                if $0.isReportedUndelivered && !$0.isCountedAsWaiting { count += 1 }
                next = $0.next
            }
        }
        return count
    }

    /// Appends `job`, taking over the caller's reference.
    @inlinable
    package mutating func append(_ job: Unmanaged<Job>) {
        job._withUnsafeGuaranteedRef { $0.next = nil }
        if let tail { tail._withUnsafeGuaranteedRef { $0.next = job } } else { head = job }
        tail = job
    }

    /// Inserts `job` at the front, taking over the caller's reference.
    mutating func prepend(_ job: Unmanaged<Job>) {
        job._withUnsafeGuaranteedRef { $0.next = head }
        head = job
        if tail == nil { tail = job }
    }

    /// Removes the first job. The caller gets its reference.
    @inlinable
    package mutating func popFirst() -> Unmanaged<Job>? {
        guard let job = head else { return nil }
        head = job._withUnsafeGuaranteedRef { $0.next }
        if head == nil { tail = nil }
        return job
    }
}
