/// A piece of work that is itself an entry in the ready queue, so queueing allocates nothing.
///
/// Called `Job` in this package. No other module can create one, since queueing it twice would break the queue. Public
/// because a class with `package` access cannot be subclassed elsewhere.
@_documentation(visibility: internal)
open class _Job {
    // The link in the list that holds the job: a ready queue, a mailbox, or a list in the layer above. Every list owns
    // its members (+1).
    @exclusivity(unchecked)
    @usableFromInline final var link: Unmanaged<Job>?

    @usableFromInline package init() { link = nil }

    /// Has accessors because `@exclusivity(unchecked)` does not apply to direct access from another module.
    @inlinable
    package final var next: Unmanaged<Job>? {
        @inline(__always) get { link }
        @inline(__always) set { link = newValue }
    }

    /// Returns the reversed list's first job.
    package static func reversed(_ first: Unmanaged<Job>?) -> Unmanaged<Job>? {
        var reversed: Unmanaged<Job>?
        var rest = first
        while let job = rest {
            rest = job._withUnsafeGuaranteedRef { $0.next }
            job._withUnsafeGuaranteedRef { $0.next = reversed }
            reversed = job
        }
        return reversed
    }

    static func count(from first: Unmanaged<Job>?, atMost most: Int = .max) -> Int {
        var count = 0
        var next = first
        while count < most, let job = next {
            count += 1
            next = job._withUnsafeGuaranteedRef { $0.next }
        }
        return count
    }

    /// Does the work, on the thread of the job's loop.
    open func run() {}

    /// Runs the job and releases the queue's reference.
    ///
    /// The loop calls this, not `run()`. An override must pass the reference on or release it.
    open func runAndRelease() {
        run()
        Unmanaged.passUnretained(self).release()
    }

    // For reports of slow handlers. Read before the job runs.

    open var kind: HandlerKind { .job }
    /// The call site of the job's handler, if known.
    open var handlerCallSite: CallSite? { nil }
    /// The layer above's information about the job.
    open var subject: (any AnyObject & Sendable)? { nil }

    /// True when a loop that ends first must report the job.
    open var isReportedUndelivered: Bool { true }

    /// True when the job counts as one of the loop's `waitingHandlers`.
    open var isCountedAsWaiting: Bool { false }

    /// True when the job's event has not happened yet. Any thread, while the job cannot end.
    open var isStillWaiting: Bool { true }

    /// The line that made this waiter's promise, if known. On the loop's thread, while the job waits.
    open var awaitedCallSite: CallSite? { nil }

    /// Withdraws and discards a waiter in `CrossThreadWaiters`. Called on the loop's thread when the loop ends.
    /// - Returns: false if its promise has settled; the loop then has the waiter among its jobs, or soon will.
    open func discardIfWaiting() -> Bool { false }

    /// Releases the queue's reference without running the job, because the loop has ended. An override must call this
    /// implementation.
    open func discardAndRelease() { Unmanaged.passUnretained(self).release() }
}

@usableFromInline package typealias Job = _Job

package final class ClosureJob: Job {
    private let body: () -> Void
    private let callSite: CallSite?

    package init(_ body: @escaping () -> Void, _ callSite: CallSite? = nil) {
        self.body = body
        self.callSite = callSite
    }

    package override func run() { body() }

    package override var handlerCallSite: CallSite? { callSite }
}
