/// A piece of work that is itself an entry of the loop's ready queue, so that queueing it allocates nothing.
///
/// For the modules of this package, which call it `Job`: no other module can create a job, since queueing one twice
/// would break the queue. It is public because a class with `package` access cannot be subclassed in another module.
@_documentation(visibility: internal)
open class _Job {
    // The link of whichever list holds the job: one of the layer above, a mailbox, or a ready queue, one after the
    // other. Every list owns its members (+1).
    @exclusivity(unchecked)
    @usableFromInline final var link: Unmanaged<Job>?

    /// Creates a job that is in no queue.
    @usableFromInline package init() { link = nil }

    /// The next job in the list that holds this one. Declared with accessors, since `@exclusivity(unchecked)` does not
    /// apply when another module accesses the field directly.
    @inlinable
    package final var next: Unmanaged<Job>? {
        @inline(__always) get { link }
        @inline(__always) set { link = newValue }
    }

    /// Reverses a list, and returns its new first job.
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

    /// The number of jobs in a list, or `most` if they are more.
    static func count(from first: Unmanaged<Job>?, atMost most: Int = .max) -> Int {
        var count = 0
        var next = first
        while count < most, let job = next {
            count += 1
            next = job._withUnsafeGuaranteedRef { $0.next }
        }
        return count
    }

    /// Does the work. Called on the thread of the loop that has the job.
    open func run() {}

    /// Runs the job and releases the queue's reference.
    ///
    /// The loop calls this in place of `run()`. Override it only to pass that reference on instead of releasing it; an
    /// override must do one of the two.
    open func runAndRelease() {
        run()
        Unmanaged.passUnretained(self).release()
    }

    // For reports of handlers that block the loop for a long time. Read before the job runs.

    /// The kind of the job.
    open var kind: HandlerKind { .job }
    /// The call site of the handler that the job calls, if it is known.
    open var handlerCallSite: CallSite? { nil }
    /// The layer above's information about the job.
    open var subject: (any AnyObject & Sendable)? { nil }

    /// Whether a loop that ends before the job has run reports the job.
    open var isReportedUndelivered: Bool { true }

    /// Whether the loop counts the job among its `waitingHandlers` already.
    open var isCountedAsWaiting: Bool { false }

    /// Whether the job's event has not happened yet. Any thread, while the job cannot end.
    open var isStillWaiting: Bool { true }

    /// The line that made the promise that this waiter waits for, if known. On the loop's thread, while it waits.
    open var awaitedCallSite: CallSite? { nil }

    /// Called on a waiter that the loop knows as one of its `OutsideWaiters` when the loop ends, on the loop's thread.
    /// The waiter withdraws, and is discarded.
    /// - Returns: false if its promise has settled already; the waiter is then among the loop's jobs, or will be in a
    ///   moment.
    open func discardIfWaiting() -> Bool { false }

    /// Releases the queue's reference without running the job, because the loop has ended. Override it to be notified;
    /// an override must call this implementation.
    open func discardAndRelease() { Unmanaged.passUnretained(self).release() }
}

@usableFromInline package typealias Job = _Job

/// A job that calls a closure.
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
