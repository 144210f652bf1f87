import CLinux

/// Released jobs, kept for reuse by the layer above, which knows their contents.
///
/// Invariant: used on the loop's thread only. The list holds the only reference to each job. No foreign code runs here,
/// because the layer above keeps only jobs with nothing to destroy.
@usableFromInline
struct SpareJobs: ~Copyable {
    @usableFromInline var newest: Unmanaged<Job>?
    /// Further jobs that may be kept. Zero under a sanitizer, which must see each job freed.
    @usableFromInline var room = clinux_is_sanitized() ? 0 : SpareJobs.capacity

    /// Enough for the concurrent steps in most turns. For promises, with 96 bytes each including the allocator's
    /// overhead, this limits the memory to 12 KiB.
    @usableFromInline static var capacity: Int { 128 }

    /// - Returns: false if there is no room; the caller keeps the reference.
    @inlinable @inline(__always)
    mutating func keep(_ job: Unmanaged<Job>) -> Bool {
        guard room > 0 else { return false }
        room &-= 1
        job._withUnsafeGuaranteedRef { $0.next = newest }
        newest = job
        return true
    }

    /// - Returns: a job that is in no list, with the only reference to it; `nil` if there is none.
    @inlinable @inline(__always)
    mutating func take() -> Unmanaged<Job>? {
        guard let job = newest else { return nil }
        newest = job._withUnsafeGuaranteedRef { $0.next }
        job._withUnsafeGuaranteedRef { $0.next = nil }
        room &+= 1
        return job
    }

    mutating func close() {
        room = 0
        var rest = newest
        newest = nil
        while let job = rest {
            rest = job._withUnsafeGuaranteedRef { $0.next }
            job.release()
        }
    }
}
