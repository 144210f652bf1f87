/// A library job that calls a closure. If the loop ends first, the report counts the handlers that the job would have
/// served, but not the job.
package final class InternalJob: Job {
    private let body: () -> Void
    private let end: (() -> Void)?

    /// - Parameter end: called instead if the loop ends first.
    package init(_ body: @escaping () -> Void, ifLoopEnds end: (() -> Void)? = nil) {
        self.body = body
        self.end = end
        super.init()
    }

    package override func run() { body() }

    package override var isReportedUndelivered: Bool { false }

    package override func discardAndRelease() {
        end?()
        super.discardAndRelease()
    }
}
