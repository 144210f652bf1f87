/// Jobs in the order in which they came. Owns them.
@usableFromInline
package struct ReadyQueue: ~Copyable {
    @usableFromInline var head: Unmanaged<Job>?
    @usableFromInline var tail: Unmanaged<Job>?

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { head == nil }

    /// How many there are. They are counted one by one.
    package var count: Int { Job.count(from: head) }

    /// How many of them are reported if they never run, beside those that the loop counts as handlers that wait.
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

    /// Takes over the caller's reference to `job`.
    @inlinable
    package mutating func append(_ job: Unmanaged<Job>) {
        job._withUnsafeGuaranteedRef { $0.next = nil }
        if let tail { tail._withUnsafeGuaranteedRef { $0.next = job } } else { head = job }
        tail = job
    }

    /// Hands the reference to the caller.
    @inlinable
    package mutating func popFirst() -> Unmanaged<Job>? {
        guard let job = head else { return nil }
        head = job._withUnsafeGuaranteedRef { $0.next }
        if head == nil { tail = nil }
        return job
    }
}
