/// A piece of work that is its own entry in the loop's ready queue, so that queueing it allocates nothing.
///
/// For the library's own modules: nobody else can make one, since queueing a job twice would break the queue. Use
/// closures.
open class Job {
    // The link of whichever list holds the job: one of the layer above, a mailbox, or a ready queue, one after the
    // other. Every list owns its members (+1).
    @exclusivity(unchecked)
    @usableFromInline final var link: Unmanaged<Job>?

    /// A job that stands in no queue.
    @usableFromInline package init() { link = nil }

    /// The next in the list that holds the job. Through accessors, since `@exclusivity(unchecked)` does not reach
    /// another module's direct access to the field.
    @inlinable
    package final var next: Unmanaged<Job>? {
        @inline(__always) get { link }
        @inline(__always) set { link = newValue }
    }

    /// Turns a list round, and answers its new first.
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

    /// How many stand in a list.
    static func count(from first: Unmanaged<Job>?) -> Int {
        var count = 0
        var next = first
        while let job = next {
            count += 1
            next = job._withUnsafeGuaranteedRef { $0.next }
        }
        return count
    }

    /// What the job does. Called on the thread of the loop that it was handed to.
    open func run() {}

    /// Runs the job and gives up the reference that the queue held.
    ///
    /// Called by the loop in place of `run()`. Override it only to pass that reference on instead of releasing it; an
    /// override must do one of the two.
    open func runAndRelease() {
        run()
        Unmanaged.passUnretained(self).release()
    }

    // What a report says of the job, if it holds the loop for long. Asked before it runs.

    /// What it is.
    open var kind: HandlerKind { .job }
    /// Where it comes from, if that is known.
    open var startedAt: CallSite? { nil }
    /// What the layer above knows of it.
    open var subject: (any AnyObject & Sendable)? { nil }

    /// Whether a loop that ends before the job has run reports it.
    open var isReportedUndelivered: Bool { true }

    /// Whether the loop counts it among its `waitingHandlers` already.
    open var isCountedAsWaiting: Bool { false }

    /// Whether what it stands for is still to come. Any thread, while the job cannot end.
    open var isStillWaiting: Bool { true }

    /// Gives up the reference that the queue held, without running: the loop has ended. Override it to learn of that;
    /// an override must call this one.
    open func discardAndRelease() { Unmanaged.passUnretained(self).release() }
}

/// A closure as a job.
package final class ClosureJob: Job {
    private let body: () -> Void

    package init(_ body: @escaping () -> Void) { self.body = body }

    package override func run() { body() }
}

/// The same with the line that it was handed over at: for loops that tell which of them were slow.
final class LocatedJob: Job {
    private let body: () -> Void
    private let place: CallSite

    init(_ body: @escaping () -> Void, _ place: CallSite) {
        self.body = body
        self.place = place
    }

    override func run() { body() }

    override var startedAt: CallSite? { place }
}
